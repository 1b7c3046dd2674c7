"""A fanotify group: fanotify_init(2), fanotify_mark(2). File handle (FID) mode only.

In the older mode each event carries an open descriptor of the file. Reading such an event opens the file,
and while we hold a lease on it that open would wait for ourselves until the kernel breaks the lease, 45 s.
"""

import ctypes
import os
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

_CLOEXEC, _NONBLOCK = 0x1, 0x2
_UNLIMITED_QUEUE, _UNLIMITED_MARKS = 0x10, 0x20  # with CAP_SYS_ADMIN
_REPORT_PIDFD: Final = 0x80  # Linux 5.15
_REPORT_DIR_FID: Final = 0x400  # Linux 5.9
_REPORT_NAME: Final = 0x800  # Linux 5.9

_ADD, _REMOVE, _FLUSH = 0x1, 0x2, 0x80
_AT_FDCWD: Final = -100
# With pidfds each event read takes a descriptor until it is looked at: some 600 at a time.
_READ, _READ_PIDFDS = 1 << 18, 1 << 15

_libc = ctypes.CDLL(None, use_errno=True)
_fanotify_init = _libc.fanotify_init
_fanotify_mark = _libc.fanotify_mark
_fanotify_mark.argtypes = (ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p)


class Scope(IntEnum):
    """What a mark is on: a directory and its children, or a whole filesystem (Linux 4.20).

    A mark on a mount is left out: it is refused wherever one on the filesystem is, and does not see what
    containers open through mounts of their own.
    """

    INODE = 0
    FILESYSTEM = 0x100


OPEN: Final = 0x20
ON_CHILD: Final = 0x08000000  # FAN_EVENT_ON_CHILD: a directory's mark is for what lies directly in it
# FAN_MARK_IGNORE (Linux 6.0), …_IGNORED_SURV_MODIFY, and …_EVICTABLE (5.19): the mark goes when memory
# is short, and keeps no inode in it.
_IGNORE: Final = 0x400 | 0x40 | 0x200
_DONT_FOLLOW: Final = 0x4


@dataclass(frozen=True, slots=True)
class Kind:
    """What a group reports. `pidfds`: Linux 5.15. `unlimited`: a queue as long as memory lasts.

    A queue that is not unlimited holds 16,384 events (fs.fanotify.max_queued_events) and says when
    it overflowed.
    """

    names: bool = False
    pidfds: bool = False
    unlimited: bool = True

    @property
    def flags(self) -> int:
        """The flags of fanotify_init."""
        return (
            _CLOEXEC
            | _NONBLOCK
            | _REPORT_DIR_FID
            | (_REPORT_NAME if self.names else 0)
            | (_REPORT_PIDFD if self.pidfds else 0)
            | (_UNLIMITED_QUEUE | _UNLIMITED_MARKS if self.unlimited else 0)
        )


class Group:
    """One group and its descriptor `fd`. Close it, or use it in `with`."""

    def __init__(self, kind: Kind, fd: int | None = None) -> None:
        """Make a group, or take over `fd`, which `is_group_of` this kind.

        Raises OSError: EPERM without CAP_SYS_ADMIN, ENOSYS without fanotify, EINVAL before Linux 5.9 or
        for what this kernel does not report, EMFILE beyond fs.fanotify.max_user_groups.
        """
        self.kind = kind
        if fd is None:
            fd = _fanotify_init(ctypes.c_uint(kind.flags), ctypes.c_uint(os.O_RDONLY | os.O_LARGEFILE))
            if fd < 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), "fanotify_init")
        self.fd = fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the group; its marks and events go with it unless its descriptor lives elsewhere."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def mark(self, scope: Scope, mask: int, dir_fd: int, path: bytes = b".") -> None:
        """Report events of `mask`. Marking twice changes nothing. Raises OSError.

        EXDEV: a btrfs subvolume. EOPNOTSUPP: no file handles. ENODEV: no filesystem id. A `path` that is
        a link is not followed.
        """
        self._mark(_ADD | _DONT_FOLLOW | scope, mask, dir_fd, path)

    def ignore(self, path: bytes, mask: int = OPEN | ON_CHILD) -> None:
        """Report no events of `mask` in one directory, given by path (`/proc/self/fd/N` will do).

        Raises OSError: EINVAL before Linux 6.0.
        """
        self._mark(_ADD | _IGNORE, mask, _AT_FDCWD, path)

    def heed_all(self) -> None:
        """Take all marks on inodes back, those of `ignore` too. Raises OSError."""
        self._mark(_FLUSH, 0, _AT_FDCWD, None)

    def marks_filesystem(self) -> bool:
        """Whether a mark on a filesystem is in force: it goes, without a word, when that is unmounted.

        From /proc/self/fdinfo, proc_pid_fdinfo(5): `fanotify sdev:… mflags:… mask:…`. Raises nothing.
        """
        return any(line.startswith(b"fanotify sdev:") for line in _fdinfo(self.fd))

    def _mark(self, flags: int, mask: int, dir_fd: int, path: bytes | None) -> None:
        if _fanotify_mark(self.fd, flags, mask, dir_fd, path) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)

    def read(self) -> bytes:
        """Some of what waits, as `events.parse` takes it; `b""` when nothing does. Raises OSError."""
        try:
            return os.read(self.fd, _READ_PIDFDS if self.kind.pidfds else _READ)
        except BlockingIOError:
            return b""


def is_group_of(fd: int, kind: Kind) -> bool:
    """Whether a descriptor, perhaps handed down by an earlier process, is a group of exactly this kind.

    /proc/self/fdinfo (proc_pid_fdinfo(5)) tells a group's flags. Raises nothing.
    """
    for line in _fdinfo(fd):
        if line.startswith(b"fanotify flags:"):
            with suppress(ValueError, IndexError):
                return int(line.split()[1].partition(b":")[2], 16) == kind.flags
    return False


def _fdinfo(fd: int) -> list[bytes]:
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb") as lines:
            return lines.readlines()
    except OSError:
        return []
