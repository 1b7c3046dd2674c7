"""Opens in directories that belong to no entry, so far.

A new entry's directories are not known before the next look, and a directory may be moved into a location,
or be there before we look for the first time. Who opened something in them meanwhile is remembered here, up
to a bound, and becomes an opener of the entry that they turn out to be.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from cachewarden.openers.lastuses import Moment
from cachewarden.openers.processes import Process, Who

BOUND = 100_000

# A directory's handle, and the name in it where names are reported (`b""` where not).
Where = tuple[bytes, bytes]


class Seen(NamedTuple):
    """One process's last open in one place."""

    who: Who
    when: Moment


class Elsewhere:
    """Pairs of a place and a process; `forgotten` counts those that the bound cost, since it was asked."""

    def __init__(self, bound: int = BOUND) -> None:
        self._bound = bound
        self._pairs: dict[Where, dict[Process, Seen]] = {}
        self._count = 0
        self._notes: dict[bytes, int] = {}
        self.forgotten = 0

    def __len__(self) -> int:
        return self._count

    def note(self, where: Where, who: Who, now: Moment) -> None:
        """A process opened something there."""
        pairs = self._pairs.setdefault(where, {})
        if who.process not in pairs:
            self._count += 1
        pairs[who.process] = Seen(who, now)
        if self._count > self._bound:
            self._forget_oldest()

    def count(self, handle: bytes) -> None:
        """Some process, gone already perhaps, opened something in this directory."""
        self._notes[handle] = self._notes.get(handle, 0) + 1

    def _forget_oldest(self) -> None:
        # In the order in which places were first seen; one place is given up whole.
        where = next(iter(self._pairs))
        self.forgotten += len(self._drop(where))

    def claim(self, where: Where) -> Iterator[Seen]:
        """Give out, once, who opened something there."""
        yield from self._drop(where).values()

    def _drop(self, where: Where) -> dict[Process, Seen]:
        pairs = self._pairs.pop(where, {})
        self._count -= len(pairs)
        self._notes.pop(where[0], None)
        return pairs

    def hot(self, times: int) -> list[bytes]:
        """Handles of directories that were counted at least so many times lately."""
        return [handle for handle, count in self._notes.items() if count >= times]

    def forget(self, handle: bytes) -> None:
        """A directory that is no location's was silenced: what was seen in it will not be asked for."""
        self._drop((handle, b""))

    def sweep(self, alive: Callable[[Process], bool]) -> None:
        """Let go of processes that have ended: they hold nothing, wherever it goes."""
        for where, pairs in list(self._pairs.items()):
            for process in [each for each in pairs if not alive(each)]:
                del pairs[process]
                self._count -= 1
            if not pairs:
                del self._pairs[where]
        if len(self._notes) > self._bound:
            self._notes.clear()
