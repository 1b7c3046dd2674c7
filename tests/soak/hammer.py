"""One hammer: programs that load and write entries of one location, while an engine evicts them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.soak.engines import ENGINES, Tally
from tests.soak.places import place
from tests.soak.verdicts import OUTCOMES, VERDICTS
from tests.soak.waits import Waits

_HERE = os.path.dirname(os.path.abspath(__file__))
_OWN_MOUNTS = ("unshare", "--mount", "--propagation", "private")
# Where readers live: how their program is started, and how they see the location.
READERS = {
    "as we do": ((), None),
    "own mounts, by a bind mount": (_OWN_MOUNTS, "bind"),
    "own processes": (("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"), None),
    "own users": (("unshare", "--user", "--map-root-user"), None),
    "own mounts, by an overlay": (_OWN_MOUNTS, "overlay"),
}
_ENDING_SECONDS = 60


@dataclass(frozen=True)
class Plan:
    """How to hammer. It ends after so many evictions, or seconds, or (`until_torn`) at the first torn load.

    An entry has `files` files, a third of them in a directory of its own; a load takes `shards` of them.
    `rest`: at most so many seconds pass between two shards, in every second load. `making`: an entry that is
    missing takes so many seconds to make; the default is longer than an eviction may hold one.
    """

    engine: str = "cachewarden"
    evictions: int = 3000
    seconds: float = 120
    until_torn: bool = False
    filesystem: str = "ext4"
    entries: int = 256
    files: int = 6
    shards: int = 6
    rest: float = 0.02
    making: float = 1.0
    seed: int = 1

    @property
    def names(self) -> list[str]:
        """The files of an entry."""
        inner = self.files // 3
        outer = [f"{number}" for number in range(self.files - inner)]
        return outer + [f"inner/{number}" for number in range(inner)]


@dataclass
class Report:
    """What came of it. Keys of `loads` are (where the reader lives, how it reads); values count verdicts.

    `first` and `others` are how long opens of first and of other shards took. `written` counts outcomes.
    """

    plan: Plan
    seconds: float
    tally: Tally
    loads: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    first: Waits = field(default_factory=Waits)
    others: Waits = field(default_factory=Waits)
    written: dict[str, dict[str, int]] = field(default_factory=dict)
    stories: list[str] = field(default_factory=list)
    trash: list[str] = field(default_factory=list)
    torn_entries: list[str] = field(default_factory=list)

    def count(self, verdict: str) -> int:
        """How many loads ended so."""
        return sum(each[VERDICTS.index(verdict)] for each in self.loads.values())

    @property
    def torn(self) -> int:
        """Loads that found one shard, and not another one of the same generation."""
        return self.count("torn") + self.count("mixed")


def hammer(plan: Plan, tell: Callable[[Tally], None] = lambda _: None) -> Report:
    """Run it to its end; the report. `tell` hears of each round."""
    with place(plan.filesystem) as room:
        for name in ("cache", "workshop", "state"):
            os.mkdir(f"{room}/{name}")
        location = f"{room}/cache"
        engine = ENGINES[plan.engine](os.fsencode(location), os.fsencode(f"{room}/state"))
        try:
            with programs(plan, room) as running:
                begun = time.monotonic()
                while not _over(plan, room, engine.tally, begun):
                    engine.round()
                    tell(engine.tally)
                report = Report(plan, time.monotonic() - begun, engine.tally)
                for where, program in running:
                    _take_in(report, where, program)
        finally:
            engine.close()
        report.stories = [_with_history(story, engine.tally) for story in _stories(room)]
        report.trash = _trash(room)
        report.torn_entries = _torn_entries(plan, location)
    return report


def _over(plan: Plan, room: str, tally: Tally, begun: float) -> bool:
    if tally.removed >= plan.evictions or time.monotonic() - begun >= plan.seconds:
        return True
    return plan.until_torn and any(" torn " in story or " mixed " in story for story in _stories(room))


@contextmanager
def programs(plan: Plan, room: str) -> Iterator[list[tuple[str, subprocess.Popen]]]:
    """All readers and writers, with where they live or what they do; none is left afterwards."""
    running = []
    try:
        for number, (script, where, wrap, orders) in enumerate(_all_orders(plan, room)):
            orders |= {"where": where, "seed": plan.seed * 100 + number, "rest": plan.rest}
            command = [*wrap, sys.executable, "-S", "-E", os.path.join(_HERE, script), json.dumps(orders)]
            with open(f"{room}/stories", "ab") as stories:
                program = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stories, cwd="/"
                )
            running.append((where, program))
        yield running
    finally:
        for _, program in running:
            if program.poll() is None:
                program.kill()
            program.communicate()


def _all_orders(plan: Plan, room: str) -> Iterator[tuple[str, str, tuple[str, ...], dict]]:
    names = plan.names
    common = {"location": f"{room}/cache", "entries": [f"entry{number}" for number in range(plan.entries)]}
    shards = names[:: max(1, len(names) // plan.shards)]
    for number, (where, (wrap, window)) in enumerate(READERS.items()):
        os.mkdir(f"{room}/mounts-{number}")
        yield "reader.py", where, wrap, common | {
            "shards": shards, "window": window, "room": f"{room}/mounts-{number}",
        }  # fmt: skip
    yield "writer.py", "builder", (), common | {
        "work": "build", "idle": 0.002, "room": f"{room}/workshop", "files": names, "directories": ["inner"],
        "making": plan.making,
    }  # fmt: skip
    yield "writer.py", "adder", (), common | {
        "work": "add", "idle": 0.01, "trash": f"{room}/.cachewarden-trash",
    }  # fmt: skip


def _take_in(report: Report, where: str, program: subprocess.Popen) -> None:
    said, _ = program.communicate(timeout=_ENDING_SECONDS)
    if program.returncode:
        raise RuntimeError(f"{where}: ended with status {program.returncode}; see the stories")
    told = json.loads(said)
    if where not in READERS:
        report.written[where] = {OUTCOMES[at]: count for at, count in enumerate(told["tally"]) if count}
        return
    for way, counts in told["tally"].items():
        report.loads[where, way] = counts
    report.first.take_in(told["first"])
    report.others.take_in(told["others"])


def _stories(room: str) -> list[str]:
    with open(f"{room}/stories", errors="replace") as stories:
        return stories.read().splitlines()


def _with_history(story: str, tally: Tally) -> str:
    histories = (
        f"{name}: {'; '.join(latest)}" for name, latest in tally.history.items() if name in story.split()
    )
    return "\n      ".join((story, *histories))


def _trash(room: str) -> list[str]:
    found: list[str] = []
    for base in (room, f"{room}/cache"):
        trash = f"{base}/.cachewarden-trash"
        if os.path.isdir(trash):
            found += sorted(os.listdir(trash))
    return found


def _torn_entries(plan: Plan, location: str) -> list[str]:
    """Entries that are not whole though nobody evicts any more."""
    torn = []
    for entry in os.listdir(location):
        generations = set()
        for name in plan.names:
            try:
                with open(f"{location}/{entry}/{name}", "rb") as file:
                    generations.add(file.read())
            except FileNotFoundError:
                generations.add(b"")
        if len(generations) != 1:
            torn.append(entry)
    return torn
