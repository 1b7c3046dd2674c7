"""What it costs to know who opened what, and what is missed: against watchdog and plain inotify marks.

In one run, on the same files, under the same load, each reader in a process of its own.
"""

import multiprocessing
import resource
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from benchmarks import Row
from benchmarks.opening import Load, make_deep
from benchmarks.watchers import Inotify, Ours, Watchdog, Watcher

Kind = Callable[[str], Watcher]
_PEERS: dict[str, tuple[Kind, str]] = {
    "watchdog": (Watchdog, "≤ 0.02, none missed"),
    "inotify marks": (Inotify, "none missed"),
}
_ROUNDS = 3

K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is opened. The standard is 144,000 opens by 2,400 processes."""

    processes: int = 2400
    directories: int = 72
    files: int = 20
    hot_rounds: int = 1000
    deep_entries: int = 500
    deep_directories: int = 20
    rounds: int = _ROUNDS

    @property
    def loads(self) -> tuple[Load, ...]:
        """Entries that are directories, entries that are single files, and a few files all the time."""
        flat = self.directories * self.files
        return (
            Load("over {:,} directories", self.directories, self.processes, 3, self.files),
            Load("over {:,} files of one directory", flat, self.processes, 3 * self.files, flat=True),
            Load("in a hot loop on 50 files in {:,} directories", 5, 1, 5, 10, self.hot_rounds),
        )


@dataclass(frozen=True, slots=True)
class Found:
    """What a reader made of a load. `opens` None: alike ones are one to it."""

    cpu_seconds: float
    opens: int | None
    pairs_missed: int
    entries_missed: int
    overflows: int


def run(files: int) -> Iterator[Row]:
    """All loads at their full sizes, or smaller ones, once, where the largest tree is smaller than usual."""
    share = min(1.0, files / 500_000)
    sizes = Sizes(
        processes=max(24, int(2400 * share)),
        hot_rounds=max(20, int(1000 * share)),
        deep_entries=max(10, int(500 * share)),
        rounds=_ROUNDS if share == 1 else 1,
    )
    yield from compare(sizes)


def compare(sizes: Sizes) -> Iterator[Row]:
    """A row for each load and peer, then one for setting up."""
    for load in sizes.loads:
        kinds: list[Kind] = [Ours, *(peer for peer, _ in _PEERS.values())]
        ours, *theirs = in_turns(sizes.rounds, kinds, partial(_under, load))
        spent = statistics.median(each.cpu_seconds for each in ours)
        where = load.name.format(load.groups)
        what = (
            f"CPU per open, {load.opens:,} opens by {load.processes:,} processes {where}: {told(load, ours)}"
        )
        for (name, (_, goal)), found in zip(_PEERS.items(), theirs, strict=True):
            seen = [(each.opens or 0, each.cpu_seconds) for each in found]
            each_open = statistics.median(cpu / max(1, opens) for opens, cpu in seen)
            peer = f"{name}: {told(load, found)}"
            yield Row(what, peer, spent / load.opens * 1e6, each_open * 1e6, goal, "µs")
            what = "the same"
    yield from _setting_up(sizes)


def told(load: Load, found: Sequence[Found]) -> str:
    """What was missed, in the worst of several runs."""
    lost = [load.opens - each.opens for each in found if each.opens is not None]
    parts = [f"{max(lost):,} opens missed"] if lost else []
    parts.append(f"{max(each.pairs_missed for each in found):,} of {load.pairs:,} pairs missed")
    entries = len({name for number in range(load.processes) for name in load.entries_of(number)})
    parts.append(f"{max(each.entries_missed for each in found):,} of {entries:,} opened entries missed")
    parts.append(f"{max(each.overflows for each in found):,} overflows")
    return ", ".join(parts)


def in_turns(rounds: int, kinds: Sequence[K], measure: Callable[[K], T]) -> list[list[T]]:
    """What `measure` finds of each kind, so many times, in turns."""
    found: list[list[T]] = [[] for _ in kinds]
    for _ in range(rounds):
        for results, kind in zip(found, kinds, strict=True):
            results.append(measure(kind))
    return found


def _under(load: Load, kind: Kind) -> Found:
    with tempfile.TemporaryDirectory(prefix="cachewarden-bench-") as root:
        load.make(root)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.apply(watch, (load, kind, root))


def watch(load: Load, kind: Kind, root: str) -> Found:
    """Run a load under a reader; the CPU time is that of this whole process, less that of asking."""
    watcher = kind(root)
    pairs_missed = 0
    asking = 0.0
    opened: set[bytes] = set()

    def heard(pids: dict[int, set[bytes]]) -> None:
        nonlocal pairs_missed, asking
        watcher.settle()
        before = _cpu_seconds()
        true = {(entry, pid) for pid, entries in pids.items() for entry in entries}
        pairs_missed += len(true - watcher.pairs(set(pids)))
        opened.update(entry for entry, _ in true)
        asking += _cpu_seconds() - before

    began = _cpu_seconds()
    load.run(root, heard)
    spent = _cpu_seconds() - began - asking
    missed = opened - watcher.entries()
    found = Found(spent, watcher.opens, pairs_missed, len(missed), watcher.overflows)
    watcher.stop()
    return found


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _setting_up(sizes: Sizes) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="cachewarden-bench-") as root:
        make_deep(root, sizes.deep_entries, sizes.deep_directories)
        kinds: list[Kind] = [Ours, *(peer for peer, _ in _PEERS.values())]
        ours, *theirs = in_turns(sizes.rounds, kinds, lambda kind: _set_up(kind, root))
    count = sizes.deep_entries * (sizes.deep_directories + 1)
    for name, found in zip(_PEERS, theirs, strict=True):
        what = f"until opens in {count:,} directories are heard"
        yield Row(what, name, statistics.median(ours), statistics.median(found), "≤ 1")


def _set_up(kind: Kind, root: str) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(setup_seconds, (kind, root))


def setup_seconds(kind: Kind, root: str) -> float:
    """How long a reader takes until it hears."""
    watcher = kind(root)
    watcher.stop()
    return watcher.setup_seconds
