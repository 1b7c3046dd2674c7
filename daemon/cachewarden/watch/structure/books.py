"""What a channel knows of its locations, and of the directories that it has looked up."""

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from cachewarden.openers.silence import Inode
from cachewarden.tree import open_directory
from cachewarden.watch.structure.places import MANY

_MOST_KNOWN = 100_000  # directories; a handle has some 20 bytes


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
        """Those that were reported so many times; they are counted anew from now on."""
        found = [handle for handle, count in self.busy.items() if count >= times]
        for handle in found:
            del self.busy[handle]
        return found


class Anchor:
    """A descriptor on the filesystem, for open_by_handle_at(2). Opened when it is first needed.

    It is not kept: a filesystem in which we have something open cannot be unmounted.
    """

    def __init__(self, places: Iterable[Place], given: int | None = None) -> None:
        """`given` stays the caller's."""
        self._places = places
        self._fd = given
        self._ours = False

    def fd(self) -> int:
        """The descriptor. Raises OSError where no location is to be found at its path."""
        if self._fd is None:
            self._fd = self._open()
            self._ours = True
        return self._fd

    def _open(self) -> int:
        for place in self._places:
            with suppress(OSError):
                fd = open_directory(place.path)
                found = os.fstat(fd)
                if (found.st_dev, found.st_ino) == place.root:
                    return fd
                os.close(fd)
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))

    def close(self) -> None:
        """Close what was opened here."""
        if self._ours and self._fd is not None:
            os.close(self._fd)
