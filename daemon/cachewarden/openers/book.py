"""Who opened which entry of one location: pairs of an entry and a process, with the time of the last open.

Two clocks. How long a pair holds is counted on the clock that goes on from the boot and never jumps
(CLOCK_BOOTTIME), for a wall clock set a week ahead would release everybody. When an entry was used last is
wall time, as everything that is shown and kept.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cachewarden.openers.lastuses import LastUses, Moment, Recent
from cachewarden.openers.memory import SLACK_NS, Row
from cachewarden.openers.processes import Process, Who
from cachewarden_policies.policy import DAY

Alive = Callable[[Process], bool]


class Opened(NamedTuple):
    """One live opener of an entry. `boot_ns`: its last open, nanoseconds since the boot."""

    process: Process
    comm: bytes
    boot_ns: int


@dataclass(slots=True)
class _Pair:
    opened_ns: int
    comm: bytes
    kept_ns: int | None = None  # the time that the ledger has, None where it does not know the pair


class Book:
    """The live openers of one location, and its last uses.

    `hold_ns`: how long after its last open a process holds.
    """

    def __init__(self, key: str, hold_ns: int = 7 * DAY) -> None:
        self.key = key
        self.hold_ns = hold_ns
        self.uses = LastUses()
        self._pairs: dict[bytes, dict[Process, _Pair]] = {}
        self._unsaved: set[tuple[bytes, Process]] = set()
        self._dropped: list[Row] = []

    def __len__(self) -> int:
        return sum(map(len, self._pairs.values()))

    def note(self, entry: bytes, who: Who, now: Moment) -> None:
        """A process opened an entry, and runs on."""
        self.uses.note(entry, now, who)
        self._put(entry, who.process, who.comm, now.boot_ns)

    def used(self, entry: bytes, who: Who, now: Moment) -> None:
        """A process that is gone already opened an entry: a use, and nobody who holds."""
        self.uses.note(entry, now, who)

    def _put(self, entry: bytes, process: Process, comm: bytes, boot_ns: int) -> None:
        pairs = self._pairs.get(entry)
        if pairs is None:
            pairs = self._pairs[entry] = {}
        pair = pairs.get(process)
        if pair is None:
            pairs[process] = _Pair(boot_ns, comm)
            self._unsaved.add((entry, process))
            return
        pair.opened_ns, pair.comm = max(pair.opened_ns, boot_ns), comm
        if pair.kept_ns is None or pair.opened_ns - pair.kept_ns >= SLACK_NS:
            self._unsaved.add((entry, process))

    def carry_over(self, old: bytes, book: "Book", new: bytes) -> None:
        """What was the entry `old` here is (part of) `new` in `book` now: its openers are that one's too."""
        for process, pair in list(self._pairs.get(old, {}).items()):
            book._put(new, process, pair.comm, pair.opened_ns)
        self.uses.carry_over(old, book.uses, new)

    def of(self, entry: bytes, boot_ns: int, alive: Alive) -> Iterator[Opened]:
        """The entry's live openers; lazily, because one is enough to hold.

        Who holds no more is forgotten on the way: an entry that a thousand processes opened and left would
        otherwise cost a thousand looks at /proc each time, while leases are held.
        """
        for process, pair in list(self._pairs.get(entry, {}).items()):
            if boot_ns - pair.opened_ns < self.hold_ns and alive(process):
                yield Opened(process, pair.comm, pair.opened_ns)
            else:
                self._forget(entry, process)

    def held(self, boot_ns: int, alive: Alive) -> set[bytes]:
        """All entries that have a live opener."""
        return {entry for entry in list(self._pairs) if any(True for _ in self.of(entry, boot_ns, alive))}

    def _forget(self, entry: bytes, process: Process) -> None:
        pair = self._pairs[entry].pop(process, None)
        self._unsaved.discard((entry, process))
        if pair is not None and pair.kept_ns is not None:
            self._dropped.append(self._row(entry, process, pair))

    def recent(self) -> Mapping[bytes, Recent]:
        """The newest open of each entry, by name."""
        return self.uses.all()

    def sweep(self, boot_ns: int, alive: Alive, entries: Collection[bytes]) -> None:
        """Forget pairs that hold no more, and uses of what is not one of `entries`."""
        for entry, pairs in list(self._pairs.items()):
            for process, pair in list(pairs.items()):
                if boot_ns - pair.opened_ns >= self.hold_ns or not alive(process):
                    self._forget(entry, process)
            if not pairs:
                del self._pairs[entry]
        self.uses.forget_all_but(entries)

    def load(self, row: Row) -> None:
        """Take over a pair from the ledger; it may have been opened once more within the slack."""
        pair = _Pair(row.opened_ns + SLACK_NS, row.comm, row.opened_ns)
        self._pairs.setdefault(row.entry, {})[Process(row.pid, row.start_ticks)] = pair

    def take_unsaved(self) -> tuple[list[Row], list[Row]]:
        """Rows to be written, and rows to be removed, since the last call."""
        put = []
        for entry, process in self._unsaved:
            pair = self._pairs[entry][process]
            pair.kept_ns = pair.opened_ns
            put.append(self._row(entry, process, pair))
        self._unsaved.clear()
        drop, self._dropped = self._dropped, []
        return put, drop

    def _row(self, entry: bytes, process: Process, pair: _Pair) -> Row:
        return Row(self.key, entry, process.pid, process.start_ticks, pair.opened_ns, pair.comm)
