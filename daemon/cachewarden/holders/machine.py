"""The real machine as eviction looks at it: all processes and all mounts, at one moment."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from cachewarden.holders.processes import Inode, Snapshot, snapshot
from cachewarden.holders.sight import Sighting, in_sight
from cachewarden.holders.users import named, who
from cachewarden.holders.uses import Uses, uses
from cachewarden.mountinfo import ForeignMounts, busy_below, foreign_mounts
from cachewarden.report import Holder


class View:
    """One look. `complete` is false where a process or its mounts could not be read."""

    def __init__(self, processes: Snapshot, mounts: ForeignMounts) -> None:
        self._processes = processes
        self._mounts = mounts

    @property
    def complete(self) -> bool:
        """Whether every process could be read."""
        return self._processes.complete and self._mounts.complete

    def standing_in(self, inodes: AbstractSet[Inode]) -> tuple[Holder, ...]:
        """Processes whose cwd, root, executable or open directory is one of `inodes`, by pid.

        Not by name: leases are held meanwhile, and a user's name may have to come from another machine.
        """
        return tuple(Holder(each.kind, each.pid) for each in self._processes.standing_in(inodes))

    def busy_below(self, fd: int) -> AbstractSet[bytes]:
        """Paths beneath an open directory that are mounted, or mounted upon, in any mount namespace."""
        return busy_below(fd, self._mounts)


class Machine:
    """Looks at this machine. `complete` tells about the last look."""

    def __init__(self) -> None:
        self.complete = True

    def look(self) -> View:
        """Look at all processes and mounts now. Raises OSError without /proc."""
        view = View(snapshot(), foreign_mounts())
        self.complete = view.complete
        return view

    def using(self, inodes: AbstractSet[Inode]) -> Uses:
        """Who has `inodes` open or mapped, pids only, and whether all processes could be looked at."""
        return uses(inodes)

    def who(self, inodes: AbstractSet[Inode]) -> Mapping[Inode, tuple[Holder, ...]]:
        """The processes that use each of `inodes`, with names, for people."""
        return who(inodes)

    def in_sight(self, below: bytes) -> list[Sighting]:
        """What other processes use below an absolute path, as far as their paths tell."""
        return in_sight(below)

    def name(self, holders: Iterable[Holder]) -> tuple[Holder, ...]:
        """The same holders with the names of their programs and users."""
        return tuple(named(holder) for holder in holders)
