"""Unlinking what is past the point of no return, and counting what that really freed.

Only what was listed is unlinked. A stranger among it (made through a descriptor that nobody saw) keeps
its directory from being removed, and what is left is renamed to `s-`: only people touch that.
"""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from cachewarden.evict.holding import HeldDirectory, HeldFile, Node
from cachewarden.evict.naming import STRAY
from cachewarden.evict.traces import Traces
from cachewarden.evict.trash import Piece, Trash
from cachewarden.evict.walk import walk
from cachewarden.sums import allocated


@dataclass(slots=True)
class Freed:
    """Blocks and inodes whose last link went. Nobody had them open: their leases said so."""

    bytes: int = 0
    inodes: int = 0

    def add(self, found: os.stat_result) -> None:
        """`found` is how the inode looked with one link left (a directory: before it was removed)."""
        self.bytes += allocated(found)
        self.inodes += 1


class Purge:
    """Unlinks pieces; `freed` grows, the first error is kept in `error` with its path."""

    def __init__(self, traces: Traces) -> None:
        self.freed = Freed()
        self.error: tuple[int, bytes] | None = None
        self._traces = traces

    def held(self, trash: Trash, piece: Piece, node: Node) -> None:
        """Unlink a piece that was listed. With a stranger in it the rest stays as `s-`."""
        self._run(trash, piece, lambda name: self._node(piece.fd, name, node))

    def unlisted(self, trash: Trash, piece: Piece) -> None:
        """Unlink a piece that a list is too long for, or that an earlier process had verified."""
        self._run(trash, piece, lambda name: self._tree(piece.fd, name))

    def _run(self, trash: Trash, piece: Piece, remove: Callable[[str], None]) -> None:
        assert piece.name is not None
        try:
            remove(os.fsdecode(piece.name.encode()))
        except FileNotFoundError:
            trash.forget(piece)  # somebody else cleared the trash
        except OSError as error:
            if self.error is None:
                self.error = (error.errno or errno.EIO, piece.origin)
            if error.errno == errno.ENOTEMPTY:
                with suppress(OSError):
                    trash.rename(piece, STRAY)
        else:
            trash.forget(piece)

    def _node(self, fd: int, name: str, node: Node) -> None:
        if not isinstance(node, HeldDirectory):
            self._unlink(fd, name, node.found if isinstance(node, HeldFile) else node)
            return
        # Depth first without recursion: each directory is emptied of everything but directories on the way
        # down, and removed on the way up.
        todo, done = [(fd, name, node)], []
        while todo:
            step = todo.pop()
            done.append(step)
            directory = step[2]
            for child, file in directory.files.items():
                self._unlink(directory.fd, child, file.found)
            for child, link in directory.links.items():
                self._unlink(directory.fd, child, link)
            todo += [(directory.fd, child, below) for child, below in directory.directories.items()]
        for parent_fd, child, directory in reversed(done):
            os.rmdir(child, dir_fd=parent_fd)
            self.freed.add(directory.found)

    def _unlink(self, fd: int, name: str, found: os.stat_result) -> None:
        if found.st_nlink == 1:
            os.unlink(name, dir_fd=fd)
            self.freed.add(found)
            return
        # Another name may be in this victim, in another one, or outside: only now it is known.
        before = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if before.st_nlink == 1:
            os.unlink(name, dir_fd=fd)
            self.freed.add(before)
            return
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        try:
            os.unlink(name, dir_fd=fd)
            self._traces.note(before, os.fstat(handle))
        finally:
            os.close(handle)

    def _tree(self, fd: int, name: str) -> None:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            self._unlink(fd, name, found)
            return
        walk(fd, name, self._enter, self._leave)

    def _enter(self, fd: int, found: os.stat_result) -> list[str]:  # noqa: ARG002 - walk's
        below = []
        for name in os.listdir(fd):
            child = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISDIR(child.st_mode):
                below.append(name)
            else:
                self._unlink(fd, name, child)
        return below

    def _leave(self, parent_fd: int, name: str) -> None:
        found = os.stat(name, dir_fd=parent_fd, follow_symlinks=False)
        os.rmdir(name, dir_fd=parent_fd)
        self.freed.add(found)
