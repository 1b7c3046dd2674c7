"""What a channel knows of its locations, and of the directories that it has looked up."""

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from cachewarden.kernel.statx import mount_id
from cachewarden.openers.silence import Inode
from cachewarden.tree import open_directory
from cachewarden.watch.structure.places import MANY

_MOST_KNOWN = 20_000  # directories; each is looked up again in some 30 µs


@dataclass(slots=True)
class Place:
    """A location: where it was found last, and its root as stat(2) and fanotify name it.

    `dirty` are handles of directories that changed, each with whether it was moved itself; None: anything
    may have changed.
    """

    path: bytes
    root: Inode
    handle: bytes
    dirty: dict[bytes, bool] | None = None

    def note(self, handle: bytes, *, moved: bool) -> None:
        """A directory in it changed."""
        dirty = self.dirty
        if dirty is not None:
            dirty[handle] = moved or dirty.get(handle, False)
            if len(dirty) > MANY:
                self.dirty = None


@dataclass(slots=True)
class Known:
    """Where directories lie, by handle: true until one of them, or one above, is moved.

    `busy` counts for those outside how often they were reported.
    """

    inside: dict[bytes, tuple[str, ...]] = field(default_factory=dict)
    outside: set[bytes] = field(default_factory=set)
    busy: dict[bytes, int] = field(default_factory=dict)

    def forget(self) -> None:
        """A directory was moved, or there is a new location."""
        self.inside.clear()
        self.outside.clear()

    def is_inside(self, handle: bytes, keys: tuple[str, ...]) -> None:
        """A directory lies in these locations."""
        if len(self.inside) >= _MOST_KNOWN:
            self.inside.clear()
        self.inside[handle] = keys

    def is_outside(self, handle: bytes) -> None:
        """A directory lies in no location, and something happened in it."""
        if len(self.outside) >= _MOST_KNOWN or len(self.busy) >= _MOST_KNOWN:
            self.outside.clear()
            self.busy.clear()
        self.outside.add(handle)
        self.busy[handle] = self.busy.get(handle, 0) + 1

    def take_busy(self, times: int) -> list[bytes]:
        """Those outside that were reported so many times; they are counted anew from now on."""
        found = [each for each, count in self.busy.items() if count >= times and each in self.outside]
        for handle in found:
            del self.busy[handle]
        return found


class Anchors:
    """Descriptors of roots, one for each mount that locations lie on, for open_by_handle_at(2).

    A directory can be traced up to a root only through that root's mount, where mounts show parts of a
    filesystem. The descriptors are opened when they are first needed, and not kept: a filesystem in which we
    have something open cannot be unmounted. `missing` are locations that are not at their path any more.
    """

    def __init__(self, places: Mapping[str, Place]) -> None:
        self._places = places
        self._fds: dict[int, int] | None = None
        self._passed: dict[int, dict[Inode, Inode | None]] = {}
        self.missing: set[str] = set()

    def fds(self) -> list[int]:
        """The descriptors. Raises nothing."""
        if self._fds is None:
            self._fds = {}
            for key, place in self._places.items():
                try:
                    self._open(place)
                except OSError:
                    self.missing.add(key)
        return list(self._fds.values())

    def passed(self, fd: int) -> dict[Inode, Inode | None]:
        """What was found out through one of `fds`: which root the directories lie in; see `root_above`.

        For as long as these descriptors are open: whatever is moved meanwhile is reported by itself, with all
        that lies in it.
        """
        return self._passed.setdefault(fd, {})

    def _open(self, place: Place) -> None:
        assert self._fds is not None
        fd = open_directory(place.path)
        try:
            found, mount = os.fstat(fd), mount_id(fd)
            if (found.st_dev, found.st_ino) != place.root:
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
            if mount not in self._fds:
                self._fds[mount] = os.dup(fd)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Close what was opened."""
        for fd in (self._fds or {}).values():
            os.close(fd)
