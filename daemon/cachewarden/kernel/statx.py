"""Mount ids by descriptor: the only way to tell a bind mount from the filesystem around it.

A bind mount of the same filesystem has the same st_dev as its surroundings, and `os.path.ismount`
says no to it.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Callable
from typing import Any, Final

_AT_EMPTY_PATH: Final = 0x1000
_STATX_MNT_ID: Final = 0x1000  # statx(2), first in Linux 5.8
_SIZE: Final = 256  # sizeof(struct statx), fixed for ever by its spare fields
_MASK = struct.Struct("=I")  # stx_mask, at 0
_MNT_ID = struct.Struct("=Q")  # stx_mnt_id
_MNT_ID_AT: Final = 0x90

_libc = ctypes.CDLL(None, use_errno=True)
_statx: Callable[..., Any] | None = getattr(_libc, "statx", None)  # glibc 2.28, musl 1.2.5


def mount_id(fd: int) -> int:
    """The id of the mount that a descriptor (O_PATH will do) was opened through. Raises OSError.

    It is the first field of /proc/self/mountinfo. Ids are reused once a mount is gone: compare them
    only while a descriptor keeps the mount alive.
    """
    if _statx is not None:
        found = ctypes.create_string_buffer(_SIZE)
        if _statx(fd, b"", _AT_EMPTY_PATH, ctypes.c_uint(_STATX_MNT_ID), found) == 0:
            if _MASK.unpack_from(found)[0] & _STATX_MNT_ID:
                return int(_MNT_ID.unpack_from(found, _MNT_ID_AT)[0])
        elif ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM):  # EPERM: a seccomp filter of old
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return mount_id_from_fdinfo(fd)


def mount_id_from_fdinfo(fd: int) -> int:
    """The same from /proc/self/fdinfo (proc_pid_fdinfo(5), Linux 3.15), ten times slower. Raises OSError."""
    with open(f"/proc/self/fdinfo/{fd}", "rb") as lines:
        for line in lines:
            key, _, value = line.partition(b":")
            if key == b"mnt_id":
                return int(value)
    raise OSError(errno.ENODATA, "fdinfo names no mount")
