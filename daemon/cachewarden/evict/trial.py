"""What a write lease is worth on a filesystem, found out with a file of our own."""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from cachewarden.kernel import leases
from cachewarden.kernel.mapping import mapped

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAKE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Trial:
    """`errno` is 0 where a lease on a file that nobody has was granted.

    `sees_open`, `sees_mapping`: it was refused while another descriptor was open, or while the file was
    mapped and no other descriptor open.
    """

    errno: int
    sees_open: bool = False
    sees_mapping: bool = False

    @property
    def proves_all(self) -> bool:
        """Whether a granted lease means that nobody has the file open or mapped."""
        return self.errno == 0 and self.sees_open and self.sees_mapping


@contextmanager
def probe_file(dir_fd: int, size: int = 4096) -> Iterator[bytes]:
    """A file of our own in an open directory, which is gone after the block. Raises OSError."""
    name = b".probe-%d-%s" % (os.getpid(), os.urandom(4).hex().encode())
    fd = os.open(name, _MAKE, 0o600, dir_fd=dir_fd)
    try:
        with suppress(OSError):  # a full disk: an empty file can be leased and mapped as well
            os.write(fd, bytes(size))
        os.close(fd)
        yield name
    finally:
        with suppress(FileNotFoundError):  # whoever tries renames may have moved it
            os.unlink(name, dir_fd=dir_fd)


def try_leases(name: bytes, dir_fd: int) -> Trial:
    """Try it with a file that nobody else uses. Raises OSError."""
    leases.ignore_sigio()
    fd = os.open(name, _READ, dir_fd=dir_fd)
    try:
        code = _asked(fd)
        if code:
            return Trial(code)
        other = os.open(name, _READ, dir_fd=dir_fd)
        with ExitStack() as kept:
            try:
                sees_open = _asked(fd) == errno.EAGAIN
                kept.enter_context(mapped(other))
            finally:
                os.close(other)
            return Trial(0, sees_open, sees_mapping=_asked(fd) == errno.EAGAIN)
    finally:
        os.close(fd)


def _asked(fd: int) -> int:
    code = leases.take(fd)
    if code == 0:
        leases.give_back(fd)
    return code
