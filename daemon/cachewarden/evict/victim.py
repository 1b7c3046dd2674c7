"""What eviction is asked to do, and what it asks of others: values and narrow interfaces."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from cachewarden.report import Holder
from cachewarden_policies.policy import DAY

Inode = tuple[int, int]  # (st_dev, st_ino)


@dataclass(frozen=True, slots=True)
class Victim:
    """One entry that is to go. Paths are relative to the location's root, as in the inventory.

    `paths` go, the witness (whose presence means "complete") first. `shared_out` are paths of shared
    data that goes too because this is its last owner, in the order in which it is to go (companions
    before what they accompany). `shared_in_place` is shared data that stays, but whose use means that
    the entry is in use. `apart` are paths inside `paths` that belong to other entries: they are not
    part of the sums, and while one of them is there the victim stays.

    `dev`, `ino` are those of `paths[0]`; `listed_bytes`, `listed_files` and `newest_ns` the `Sums`
    over `paths` that the inventory found: when they differ now, the entry changed. Shared data has no
    sums of its own; it must not be newer than `measured_ns`, the wall clock when the inventory began
    (None: not checked). `soft_lock_age` in nanoseconds, see `locks`.
    """

    name: bytes
    paths: tuple[bytes, ...]
    dev: int
    ino: int
    listed_bytes: int
    listed_files: int
    newest_ns: int
    shared_out: tuple[bytes, ...] = ()
    shared_in_place: tuple[bytes, ...] = ()
    apart: tuple[bytes, ...] = ()
    husks: tuple[bytes, ...] = ()
    locks: tuple[bytes, ...] = ()
    measured_ns: int | None = None
    soft_lock_age: int = DAY


class Sight(Protocol):
    """What one look at all processes and mounts saw."""

    def standing_in(self, inodes: AbstractSet[Inode]) -> tuple[Holder, ...]:
        """Processes whose cwd, root, executable or open directory is one of `inodes`; pids only.

        Leases are held meanwhile: it must not wait for anything, such as the name of a user.
        """

    def busy_below(self, fd: int) -> AbstractSet[bytes]:
        """Paths strictly beneath an open directory that any mount namespace has mounted, has something
        mounted upon, or uses as a layer of an overlay. Raises OSError, LookupError: not known.
        """


class Used(Protocol):
    """Who has some files open or mapped."""

    @property
    def users(self) -> Mapping[Inode, Sequence[Holder]]:
        """The processes that use each inode; pids only, as in `Sight.standing_in`."""

    @property
    def complete(self) -> bool:
        """Whether no process of this machine uses an inode that is not in `users`."""


class Surroundings(Protocol):
    """Looks at processes and mounts; `holders.Machine` is the one for the real machine.

    Processes that cannot be read are left out, and that must not stop eviction: leases tell about
    files, whoever holds them.
    """

    def look(self) -> Sight:
        """Look now, once for a batch of victims."""

    def using(self, inodes: AbstractSet[Inode]) -> Used:
        """Look now who has `inodes` open or mapped, for where leases do not tell all. Waits for nothing."""

    def who(self, inodes: AbstractSet[Inode]) -> Mapping[Inode, tuple[Holder, ...]]:
        """The processes that use each of `inodes`, with names, for people. May be slow."""

    def name(self, holders: Iterable[Holder]) -> tuple[Holder, ...]:
        """The same holders with the names of their programs and users. May be slow."""


class LiveOpeners(Protocol):
    """Processes that opened an entry and still run, though they closed it."""

    def drain(self) -> None:
        """Take in all that is known up to now."""

    def holds(self, entry: bytes) -> bool:
        """Whether a living process opened this entry (by name), or whether that is unknown."""


class NoOpeners:
    """Used where opens are not seen: nobody is known."""

    def drain(self) -> None:
        """There is nothing to take in."""

    def holds(self, entry: bytes) -> bool:  # noqa: ARG002 - the interface's
        """Nobody is known to hold anything."""
        return False
