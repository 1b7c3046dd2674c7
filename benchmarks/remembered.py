"""Measuring again what was measured before, against `du -s`, and what an idle pass costs."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import Row
from benchmarks.measure import make_tree
from cachewarden.clock import SystemClock
from cachewarden.enforce.dividing import Demand, Divided, divide
from cachewarden.enforce.enforcer import Enforcer, Orders
from cachewarden.enforce.measures import MeasureFiles
from cachewarden.enforce.surveyor import Means
from cachewarden.holders import Machine
from cachewarden.ledger import PinStore, open_ledger
from cachewarden.openers import Openers
from cachewarden.scan import (
    Again,
    Changed,
    Remembered,
    changes,
    facts_of,
    measure_again,
    pack,
    remember,
    unpack,
)
from cachewarden.spec import LocationSpec, Territory
from cachewarden.watch import Legacy, Told, Watching
from cachewarden_policies.policy import DAY, SECOND, Limits, Policy

_DEMAND = Demand("plain", DAY, None)
_ROUNDS = 5
_INTERVAL_SECONDS = 300


def run(files: int) -> Iterator[Row]:
    """Measure a tree of so many files, and measure it again."""
    with tempfile.TemporaryDirectory(prefix="cachewarden-bench-") as root:
        entries = make_tree(root, files)
        time.sleep(2.5)  # until then, the directories' times prove nothing
        fd = os.open(root, os.O_RDONLY)
        try:
            yield from _measured(root, fd, entries)
        finally:
            os.close(fd)
        yield from _idle(root, files, entries)


class Pace:
    """Medians of several ways to do the same, in turns."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = {}

    def take(self, what: str, work: Callable[[], object]) -> None:
        """Do it once, and take the time."""
        start = time.monotonic()
        work()
        self._taken.setdefault(what, []).append(time.monotonic() - start)

    def __getitem__(self, what: str) -> float:
        return statistics.median(self._taken[what])


class Known:
    """What is known of the tree, as the service knows it between passes."""

    def __init__(self, root: str, fd: int) -> None:
        self.root = root
        self.fd = fd
        self.divided: Divided
        self.known: Remembered
        self.first()

    def first(self) -> None:
        """Split and walk all of it."""
        self.divided = divide(self.fd, _DEMAND, time.time_ns())
        facts = facts_of(self.fd, (), None)
        self.known = remember(self.fd, self.divided.split, facts, time.time_ns() - 2 * SECOND)

    def again(self, dirty: frozenset[bytes]) -> None:
        """Measure what is dirty."""
        now_ns = time.time_ns()
        changed = changes(self.known, self.fd, dirty) if dirty else Changed()
        if dirty:
            self.divided = divide(self.fd, _DEMAND, now_ns, self.divided, changed)
        again = Again(self.divided.split, changed, now_ns - 2 * SECOND)
        found = measure_again(self.known, self.fd, facts_of(self.fd, (), None), again)
        assert found is not None
        self.known = found

    def settle(self) -> None:
        """Measure once more what is not known to be still."""
        self.first()
        facts = facts_of(self.fd, (), None)
        self.known = remember(self.fd, self.divided.split, facts, time.time_ns(), before=self.known)

    def change(self, entries: int, number: int) -> frozenset[bytes]:
        """Let a file come in some entries; their paths."""
        changed = [f"entry{number + 100 * each}" for each in range(entries)]
        for name in changed:
            Path(self.root, name, f"new{number}").touch()
        return frozenset(map(os.fsencode, changed))


def _measured(root: str, fd: int, entries: int) -> Iterator[Row]:
    told, pace = Known(root, fd), Pace()
    few = max(1, entries // 100)
    told.settle()
    for number in range(_ROUNDS):
        pace.take("du", lambda: subprocess.run(["du", "-s", root], stdout=subprocess.DEVNULL, check=True))
        pace.take("first", told.first)
        told.settle()
        pace.take("nothing", lambda: told.again(frozenset()))
        dirty = told.change(few, number)
        pace.take("few", lambda dirty=dirty: told.again(dirty))  # type: ignore[misc]
        told.again(frozenset())  # what changed is looked at twice
    yield Row(
        f"measuring all of {entries:,} entries, names and sizes", "`du -s`", pace["first"], pace["du"], "-"
    )
    yield Row("measuring again, nothing changed", "`du -s`", pace["nothing"], pace["du"], "-")
    yield Row("measuring again, 1 % of the entries changed", "`du -s`", pace["few"], pace["du"], "≤ 0.05")
    told.settle()
    kept = pack(told.known, {})
    for _ in range(_ROUNDS):
        pace.take("figures", lambda: unpack(kept).directories.changed(fd))
        pace.take("all", lambda: unpack(kept).remembered())
    first = "our first measurement"
    yield Row(
        "figures known after a restart, no directory changed", first, pace["figures"], pace["first"], "≤ 0.1"
    )
    everything = pace["figures"] + pace["all"]
    yield Row("ready to measure again after a restart", first, everything, pace["first"], "-")


def _idle(root: str, files: int, entries: int) -> Iterator[Row]:
    """Passes of the service in which nothing changed: a process of their own tells CPU and memory."""
    here = [sys.executable, "-m", "benchmarks.remembered", root]
    told = subprocess.run(here, stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    seconds, peak = float(told[0]), int(told[1])
    share = 100 * seconds / _INTERVAL_SECONDS
    what = f"CPU of a pass over {files:,} files in {entries:,} entries, nothing changed"
    yield Row(f"{what} ({share:.2g} % of a core)", "-", seconds, None, "≤ 0.3 s for 1,000,000")
    yield Row("resident memory of that process, its first pass included", "-", peak / 1024, None, "-", "MiB")


@contextmanager
def _passing(root: str, state: bytes) -> Iterator[Callable[[], None]]:
    clock, spec = SystemClock(), LocationSpec("root", os.fsencode(root), Policy(limits=Limits(1 << 50)))
    ledger = open_ledger(state, clock.wall_ns())
    openers = Openers(clock, ledger.openers)
    told = Told(lambda _: None, lambda: None, lambda: None)
    watching = Watching(told, frozenset(), Legacy(state), openers.features)
    enforcer = Enforcer(
        Means(
            ledger=ledger,
            pins=PinStore(state),
            clock=clock,
            surroundings=Machine(),
            runtime_dir=state,
            command="a benchmark",
            opens=openers,
            changes=watching,
            measures=MeasureFiles(state),
        )
    )

    def one_pass() -> None:
        watching.watch(spec.key, spec.path)
        enforcer.run(Territory((spec,)), [spec], Orders())

    try:
        yield one_pass
    finally:
        watching.stop(in_order=False)
        openers.stop()
        ledger.close()


def _tell_idle(root: str) -> None:
    with tempfile.TemporaryDirectory() as state, _passing(root, os.fsencode(state)) as one_pass:
        for _ in range(3):  # the first, one more until all is still, and one that is written down
            one_pass()
        taken = []
        for _ in range(_ROUNDS):
            start = time.process_time()
            one_pass()
            taken.append(time.process_time() - start)
    print(statistics.median(taken), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    _tell_idle(sys.argv[1])
