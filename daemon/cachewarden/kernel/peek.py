"""Which inode a path leads to, without asking a server about it: statx(2) AT_STATX_DONT_SYNC, Linux 4.11.

A look at all processes passes by descriptors on network and FUSE mounts of others. With stat(2), one that
hangs would stop the look for ever.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Callable
from typing import Any, Final

_DONT_SYNC: Final = 0x4000
_NO_AUTOMOUNT: Final = 0x800
_TYPE_INO: Final = 0x101  # STATX_TYPE | STATX_INO
_MODE_AT, _INO_AT, _DEV_AT = 0x1C, 0x20, 0x88
_MODE, _INO, _DEV = struct.Struct("=H"), struct.Struct("=Q"), struct.Struct("=II")

_libc = ctypes.CDLL(None, use_errno=True)
_statx: Callable[..., Any] | None = getattr(_libc, "statx", None)
_buffer_type = ctypes.c_char * 256


class Peeker:
    """Reuses one buffer, so an instance belongs to one thread."""

    def __init__(self) -> None:
        self._found = _buffer_type()

    def __call__(self, name: bytes, dir_fd: int) -> tuple[int, int, int]:
        """(mode, device, inode) of what `name`, a link of /proc too, leads to. Raises OSError.

        Only the type bits of the mode are filled in.
        """
        if _statx is None:
            found = os.stat(name, dir_fd=dir_fd)
            return stat.S_IFMT(found.st_mode), found.st_dev, found.st_ino
        if _statx(dir_fd, name, _DONT_SYNC | _NO_AUTOMOUNT, _TYPE_INO, self._found) != 0:
            code = ctypes.get_errno()
            if code == errno.ENOSYS:
                found = os.stat(name, dir_fd=dir_fd)
                return stat.S_IFMT(found.st_mode), found.st_dev, found.st_ino
            raise OSError(code, os.strerror(code), name)
        raw = self._found
        major, minor = _DEV.unpack_from(raw, _DEV_AT)
        mode: int = _MODE.unpack_from(raw, _MODE_AT)[0]
        ino: int = _INO.unpack_from(raw, _INO_AT)[0]
        return stat.S_IFMT(mode), os.makedev(major, minor), ino
