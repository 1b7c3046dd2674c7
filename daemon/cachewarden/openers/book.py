"""Who opened which entry of one location: pairs of an entry and a process, with the time of the last open.

Two clocks. How long a pair holds is counted on the clock that goes on from the boot and never jumps
(CLOCK_BOOTTIME), for a wall clock set a week ahead would release everybody. When an entry was used last is
wall time, as everything that is shown and kept.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from cachewarden.openers.memory import SLACK_NS, Row
from cachewarden.openers.processes import Process
from cachewarden_policies.policy import DAY

Alive = Callable[[Process], bool]


class Moment(NamedTuple):
    """One moment on both clocks: nanoseconds since the epoch, and since the boot."""

    wall_ns: int
    boot_ns: int


class Recent(NamedTuple):
    """The newest open of an entry that was seen: nanoseconds since the epoch, and who."""

    ns: int
    pid: int
    comm: bytes


class Opened(NamedTuple):
    """One live opener of an entry. `boot_ns`: its last open, nanoseconds since the boot."""

    process: Process
    comm: bytes
    boot_ns: int


class Book:
    """The live openers of one location. `hold_ns`: how long after its last open a process holds."""

    def __init__(self, key: str, hold_ns: int = 7 * DAY) -> None:
        self.key = key
        self.hold_ns = hold_ns
        self._pairs: dict[bytes, dict[Process, tuple[int, bytes]]] = {}
        self._recent: dict[bytes, Recent] = {}
        self._kept: dict[tuple[bytes, Process], int] = {}  # what the ledger has, with its times
        self._unsaved: set[tuple[bytes, Process]] = set()

    def __len__(self) -> int:
        return sum(map(len, self._pairs.values()))

    def note(self, entry: bytes, process: Process, comm: bytes, now: Moment) -> None:
        """A process opened an entry."""
        known = self._recent.get(entry)
        if known is None or known.ns <= now.wall_ns:  # what was remembered elsewhere may be older
            self._recent[entry] = Recent(now.wall_ns, process.pid, comm)
        self._put(entry, process, comm, now.boot_ns)

    def used(self, entry: bytes, pid: int, now: Moment) -> None:
        """A process that is gone already opened an entry: a use, and nobody who holds."""
        self._recent[entry] = Recent(now.wall_ns, pid, b"")

    def _put(self, entry: bytes, process: Process, comm: bytes, boot_ns: int) -> None:
        pairs = self._pairs.setdefault(entry, {})
        boot_ns = max(boot_ns, pairs.get(process, (0, b""))[0])
        pairs[process] = (boot_ns, comm)
        kept = self._kept.get((entry, process))
        if kept is None or boot_ns - kept >= SLACK_NS:
            self._unsaved.add((entry, process))

    def carry_over(self, old: bytes, book: "Book", new: bytes) -> None:
        """What was the entry `old` here is (part of) `new` in `book` now: its openers are that one's too."""
        for process, (boot_ns, comm) in list(self._pairs.get(old, {}).items()):
            book._put(new, process, comm, boot_ns)
        recent = self._recent.get(old)
        if recent is not None and (new not in book._recent or book._recent[new].ns < recent.ns):
            book._recent[new] = recent

    def of(self, entry: bytes, boot_ns: int, alive: Alive) -> Iterator[Opened]:
        """The entry's live openers; lazily, because one is enough to hold."""
        for process, (opened_ns, comm) in self._pairs.get(entry, {}).items():
            if boot_ns - opened_ns < self.hold_ns and alive(process):
                yield Opened(process, comm, opened_ns)

    def recent(self) -> Mapping[bytes, Recent]:
        """The newest open of each entry, by name."""
        return dict(self._recent)

    def sweep(self, boot_ns: int, alive: Alive, entries: Collection[bytes]) -> None:
        """Forget pairs that hold no more, and uses of what is not one of `entries`."""
        for entry, pairs in list(self._pairs.items()):
            over = [
                process
                for process, (opened_ns, _) in pairs.items()
                if boot_ns - opened_ns >= self.hold_ns or not alive(process)
            ]
            for process in over:
                del pairs[process]
                self._unsaved.add((entry, process))
            if not pairs:
                del self._pairs[entry]
        for entry in self._recent.keys() - set(entries):
            del self._recent[entry]

    def load(self, row: Row) -> None:
        """Take over a pair from the ledger; it may have been opened once more within the slack."""
        process = Process(row.pid, row.start_ticks)
        boot_ns = row.opened_ns + SLACK_NS
        pairs = self._pairs.setdefault(row.entry, {})
        if pairs.get(process, (0, b""))[0] < boot_ns:
            pairs[process] = (boot_ns, row.comm)
        self._kept[row.entry, process] = row.opened_ns

    def take_unsaved(self) -> tuple[list[Row], list[Row]]:
        """Rows to be written, and rows to be removed, since the last call."""
        put: list[Row] = []
        drop: list[Row] = []
        for entry, process in self._unsaved:
            found = self._pairs.get(entry, {}).get(process)
            if found is not None:
                put.append(Row(self.key, entry, process.pid, process.start_ticks, *found))
                self._kept[entry, process] = found[0]
            elif self._kept.pop((entry, process), None) is not None:
                drop.append(Row(self.key, entry, process.pid, process.start_ticks, 0, b""))
        self._unsaved.clear()
        return put, drop
