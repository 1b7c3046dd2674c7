"""The ground that a batch of victims stands on: the directories above them, and locks.

Every directory on the way is opened once per batch, without following anything, and locked: a lock
on a directory is how some tools (and systemd-tmpfiles) say "hands off what is below". What is shared
by victims of one batch must be opened and locked once: flock(2) belongs to the open file description,
and a second one of our own would be refused like a stranger's.

On the location's root, only a lock of root or of our own user counts. Whoever may read the root could take
one, and would stop the eviction of everybody's entries with it, for ever; his own he can lock themselves.
"""

import errno
import os

from cachewarden.evict.locks import SoftLocks, lock, lockers, unlock
from cachewarden.evict.staying import StaysError, stays_because
from cachewarden.evict.victim import Inode
from cachewarden.kernel.openat2 import open_on_mount
from cachewarden.tree import ABSENT, open_quietly, split_path
from cachewarden_policies.reasons import KeepReason

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Ground:
    """Directories below `root_fd` and lock files, open and locked until `close`."""

    def __init__(self, root_fd: int, soft: SoftLocks) -> None:
        self._root_fd = root_fd
        self._soft = soft
        self._directories: dict[bytes, int] = {}
        self._files: list[int] = []
        self._locked: set[Inode] = set()
        self._refused: set[Inode] = set()

    def directory(self, path: bytes) -> int:
        """The open, locked directory `path`; b"" is the root.

        Raises OSError (as `tree.open_beneath`; EXDEV: another mount is on the way) and StaysError.
        """
        if path in self._directories:
            fd = self._directories[path]
        else:
            fd = self._open(path)
            self._directories[path] = fd
        try:
            self.lock_directory(fd)
        except StaysError:
            if path or not {0, os.geteuid()}.isdisjoint(lockers(fd)):
                raise
        return fd

    def _open(self, path: bytes) -> int:
        if not path:
            return os.dup(self._root_fd)
        parent, name = split_path(path)
        if name in (b"", b".", b".."):
            raise OSError(errno.EINVAL, "not a plain relative path", path)
        return open_on_mount(name, self.directory(parent))

    def lock_directory(self, fd: int) -> None:
        """Lock an open directory until it is closed. Raises StaysError."""
        found = os.fstat(fd)
        inode = (found.st_dev, found.st_ino)
        if inode in self._locked:
            return
        if inode in self._refused or not lock(fd):
            self._refused.add(inode)
            raise StaysError(KeepReason.LOCKED, (inode,))
        self._locked.add(inode)

    def lock_file(self, path: bytes, opened: dict[Inode, int], soft_lock_age: int) -> None:
        """Hold an existing lock file until `close`; a missing one is no lock.

        `opened` are descriptors of files of the batch: where the lock file is one of them, the lock goes
        through it, because a second descriptor would break its lease. Raises StaysError.
        """
        parent, name = split_path(path)
        try:
            dir_fd = self.directory(parent)
            found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
            inode = (found.st_dev, found.st_ino)
            if inode in self._locked:
                return
            fd = os.dup(opened[inode]) if inode in opened else open_quietly(name, _FILE, dir_fd)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return
            if error.errno in ABSENT:  # a link, which some tools lock with: nobody can say who holds it
                raise StaysError(KeepReason.LOCKED) from error
            raise stays_because(error) from error
        self._files.append(fd)
        found = os.fstat(fd)
        inode = (found.st_dev, found.st_ino)
        if not lock(fd) or self._soft.held(fd, soft_lock_age):
            raise StaysError(KeepReason.LOCKED, (inode,))
        self._locked.add(inode)

    def close(self) -> None:
        """Give back all locks and directories."""
        for fd in (*self._files, *self._directories.values()):
            unlock(fd)
            os.close(fd)
        self._files.clear()
        self._directories.clear()
        self._locked.clear()
