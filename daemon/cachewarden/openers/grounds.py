"""Which directories and files an entry consists of, as the kernel will name them when they are opened.

A directory is named by its file handle. A file is named by its directory's handle and its name, and only
where that matters: where a directory is shared by several entries.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from cachewarden.inventory import Entry
from cachewarden.kernel.handles import Handles
from cachewarden.kernel.openat2 import open_on_mount
from cachewarden.tree import ABSENT, open_beneath, open_directory, split_path
from cachewarden_policies.policy import SECOND

_OPEN_FRAMES = 64
_CLOSED = -1
# Vanished since it was listed, or another mount sits on it: what lies there is not the entry's.
_NOT_OURS = ABSENT | {errno.EXDEV}


class Marker(Protocol):
    """Told of everything that is found, while the descriptor to reach it is open."""

    def directory(self, name: bytes, dir_fd: int) -> None:
        """A directory of an entry; it is not listed yet. Raises OSError."""

    def shared(self, dir_fd: int, handle: bytes) -> None:
        """A directory of which single files are entries. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What some paths consist of. `complete` is false when a part could not be looked at."""

    directories: tuple[bytes, ...] = ()
    files: tuple[tuple[bytes, bytes], ...] = ()
    complete: bool = True


@dataclass(slots=True)
class _Frame:
    path: bytes  # empty where nothing apart can lie below
    fd: int
    inode: tuple[int, int]
    pending: list[bytes]


class Surveyor:
    """Looks at grounds below `root_fd`, which stays the caller's.

    `apart` are paths that belong to somebody else where they lie inside of what is looked at. With
    `counts_links`, a directory's link count tells whether it has subdirectories, as on most filesystems:
    then the many that have none are not even opened.
    """

    def __init__(self, root_fd: int, marker: Marker, apart: Iterable[bytes], *, counts_links: bool) -> None:
        self._root_fd = root_fd
        self._marker = marker
        self._apart = frozenset(apart)
        # Only above such paths do names matter on the way down.
        self._above = {parent for path in self._apart for parent in _parents(path)}
        self._counts_links = counts_links
        self._handles = Handles()
        self._parent: tuple[bytes, int] | None = None
        self._shared: dict[bytes, bytes] = {}

    def close(self) -> None:
        """Close what is kept open between two questions."""
        if self._parent is not None:
            os.close(self._parent[1])
            self._parent = None

    def of(self, paths: Iterable[bytes]) -> Ground:
        """The ground of some paths; what is not there is not in it."""
        directories: list[bytes] = []
        files: list[tuple[bytes, bytes]] = []
        complete = True
        for path in paths:
            try:
                self._add(path, directories, files)
            except OSError as error:
                complete = complete and error.errno in ABSENT
        return Ground(tuple(directories), tuple(files), complete)

    def still(self, paths: Iterable[bytes], ground: Ground) -> bool:
        """Whether what is known of unchanged paths can be used again; marks their shared directories anew.

        A mark on a directory goes with its filesystem, and that may have been away and come back.
        """
        if not ground.files:
            return True
        try:
            handles = {self._shared_handle(parent) for parent in {split_path(path)[0] for path in paths}}
        except OSError:
            return False
        return all(handle in handles for handle, _ in ground.files)

    def _add(self, path: bytes, directories: list[bytes], files: list[tuple[bytes, bytes]]) -> None:
        parent, name = split_path(path)
        fd = self._open_parent(parent)
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            directories += self._walk(path, name, fd)
        else:
            files.append((self._shared_handle(parent), name))

    def _open_parent(self, parent: bytes) -> int:
        if self._parent is None or self._parent[0] != parent:
            self.close()
            self._parent = (parent, open_beneath(self._root_fd, parent))
        return self._parent[1]

    def _shared_handle(self, parent: bytes) -> bytes:
        handle = self._shared.get(parent)
        if handle is None:
            fd = self._open_parent(parent)
            handle = self._handles.of(b"", fd)
            self._marker.shared(fd, handle)
            self._shared[parent] = handle
        return handle

    def _walk(self, path: bytes, name: bytes, dir_fd: int) -> Iterator[bytes]:
        """Handles of a directory and of all below it. A stack, and of a deep one only the end is open."""
        yield self._take(name, dir_fd)
        stack: list[_Frame] = []
        try:
            if not self._is_leaf(name, dir_fd):
                stack.append(self._enter(path, name, dir_fd))
            while stack:
                frame = stack[-1]
                if not frame.pending:
                    self._leave(stack)
                    continue
                child = frame.pending.pop()
                try:
                    yield self._take(child, frame.fd)
                    if not self._is_leaf(child, frame.fd):
                        inside = os.path.join(frame.path, child) if frame.path in self._above else b""
                        stack.append(self._enter(inside, child, frame.fd))
                        if len(stack) > _OPEN_FRAMES:
                            self._close(stack[-1 - _OPEN_FRAMES])
                except OSError as error:
                    if error.errno not in _NOT_OURS:
                        raise
        finally:
            for frame in stack:
                self._close(frame)

    def _take(self, name: bytes, dir_fd: int) -> bytes:
        self._marker.directory(name, dir_fd)
        return self._handles.of(name, dir_fd)

    def _is_leaf(self, name: bytes, dir_fd: int) -> bool:
        return self._counts_links and os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_nlink == 2

    def _enter(self, path: bytes, name: bytes, dir_fd: int) -> _Frame:
        fd = open_on_mount(name, dir_fd)
        try:
            found = os.fstat(fd)
            with os.scandir(fd) as children:
                below = [os.fsencode(each.name) for each in children if each.is_dir(follow_symlinks=False)]
        except BaseException:
            os.close(fd)
            raise
        pending = below
        if path in self._above:
            pending = [each for each in below if os.path.join(path, each) not in self._apart]
        return _Frame(path, fd, (found.st_dev, found.st_ino), pending)

    def _leave(self, stack: list[_Frame]) -> None:
        left = stack.pop()
        above = stack[-1] if stack else None
        try:
            if above is not None and above.fd == _CLOSED:
                above.fd = open_directory(b"..", left.fd)
                found = os.fstat(above.fd)
                if (found.st_dev, found.st_ino) != above.inode:
                    raise OSError(errno.ESTALE, "moved while it was looked at")
        finally:
            self._close(left)

    def _close(self, frame: _Frame) -> None:
        if frame.fd != _CLOSED:
            os.close(frame.fd)
            frame.fd = _CLOSED


def _parents(path: bytes) -> Iterator[bytes]:
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


@dataclass(frozen=True, slots=True)
class Stamp:
    """What an entry looked like when its ground was taken; unchanged, and the ground is what it was."""

    dev: int
    ino: int
    newest_ns: int
    files: int
    paths: tuple[bytes, ...]


def stamp_of(entry: Entry) -> Stamp:
    """The stamp of an entry as it was measured."""
    return Stamp(entry.dev, entry.ino, entry.measure.newest_ns, entry.listed_files, entry.claim.paths)


def settled(entry: Entry, now_ns: int) -> bool:
    """Whether a later change must show in the entry's stamp: the kernel's clock has moved on since.

    A directory that is made in the same tick as the newest time that was measured changes no stamp.
    """
    return entry.measure.newest_ns < now_ns - SECOND
