"""Writing back one filesystem: syncfs(2), Linux 2.6.39.

After it, statvfs shows what was freed on filesystems that free late; the disks of others stay alone.
"""

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)


def syncfs(fd: int) -> None:
    """Write back the filesystem that `fd` (not an O_PATH one) is on. Raises OSError (EIO, ENOSPC …)."""
    if _libc.syncfs(fd) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
