"""Which process has which pid: asked of /proc, and remembered for a moment for those that end meanwhile.

An event tells a pid, and is read up to a tenth of a second after the open. A process that has ended by then
cannot be asked its name any more; one that was met in an earlier batch is known. So the last files of an
indexer do not look as if somebody had used them.
"""

from enum import Enum, auto
from typing import NamedTuple

from cachewarden.openers.processes import UNKNOWN, Ignored, Process, Who, look, user_of
from cachewarden_policies.policy import SECOND

# Pids come again, but not so soon: the kernel hands them out in turn.
_REMEMBERED_NS = 10 * SECOND
_ROOM = 4096  # for as many processes, at least, before those of earlier are forgotten
# Ourselves under another pid: a command that reads a cache's index is no use of the cache.
_OURS = b"cachewarden"


class Standing(Enum):
    """What an open of a process means."""

    RUNS = auto()  # it holds what it opened
    ENDED = auto()  # it used what it opened
    PASSES = auto()  # a program that does not count
    OURS = auto()


class Met(NamedTuple):
    """Who it was, and what that means."""

    who: Who
    standing: Standing


class Acquaintances:
    """Belongs to one channel, and is used under its lock. `own` is our pid."""

    def __init__(self, ignored: Ignored, own: int) -> None:
        self._ignored = ignored
        self._own = own
        self._known: dict[int, tuple[Who, int]] = {}
        self._room = _ROOM

    def meet(self, pid: int, boot_ns: int, *, ended: bool = False) -> Met:
        """Who has this pid, or had it a moment ago. `boot_ns` is now.

        `ended`: it is known that it has; who has its pid by now is somebody else.
        """
        if pid == 0:
            return Met(Who(UNKNOWN), Standing.RUNS)
        if pid == self._own:
            return Met(Who(Process(pid, 0)), Standing.OURS)
        found = look(pid) if not ended else None
        if found is None:
            who, seen_ns = self._known.get(pid, (Who(Process(pid, 0)), boot_ns))
            if boot_ns - seen_ns > _REMEMBERED_NS:
                who = Who(Process(pid, 0))
            return Met(who, self._standing(who, Standing.ENDED))
        who = Who(*found, user_of(pid))  # each time: a server gives its rights up after its start
        self._known[pid] = (who, boot_ns)
        if len(self._known) > self._room:
            self._forget(boot_ns)
        return Met(who, self._standing(who, Standing.RUNS))

    def _standing(self, who: Who, otherwise: Standing) -> Standing:
        if who.comm == _OURS:
            return Standing.OURS
        return Standing.PASSES if self._ignored.matches(who.process, who.comm) else otherwise

    def _forget(self, boot_ns: int) -> None:
        self._known = {
            pid: known for pid, known in self._known.items() if boot_ns - known[1] <= _REMEMBERED_NS
        }
        self._room = max(_ROOM, 2 * len(self._known))
