"""openat2(2), Linux 5.6: opening below a directory without ever leaving its mount.

RESOLVE_NO_XDEV makes the kernel itself refuse (EXDEV) to step onto another mount, bind mounts
included: nothing can be mounted between a look at the mount table and the open.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from typing import Final

from cachewarden.kernel.statx import mount_id
from cachewarden.tree import open_directory

_SYS_OPENAT2: Final = 437  # the same on every architecture, as all system calls since Linux 5.1
_RESOLVE: Final = 0x01 | 0x04 | 0x08  # NO_XDEV, NO_SYMLINKS, BENEATH
_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_SIZE = ctypes.c_size_t(ctypes.sizeof(_OpenHow))
_NUMBER = ctypes.c_long(_SYS_OPENAT2)
_QUIET = ctypes.byref(_OpenHow(_FLAGS | os.O_NOATIME, 0, _RESOLVE))
_PLAIN = ctypes.byref(_OpenHow(_FLAGS, 0, _RESOLVE))


def _open_on_mount(name: bytes, dir_fd: int) -> int:
    fd: int = _syscall(_NUMBER, dir_fd, name, _QUIET, _SIZE)
    if fd < 0 and ctypes.get_errno() == errno.EPERM:  # O_NOATIME needs ownership or CAP_FOWNER
        fd = _syscall(_NUMBER, dir_fd, name, _PLAIN, _SIZE)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return fd


def open_and_compare(name: bytes, dir_fd: int) -> int:
    """The same as `open_on_mount` for kernels and sandboxes without openat2; slower."""
    fd = open_directory(name, dir_fd)
    try:
        stayed = mount_id(fd) == mount_id(dir_fd)
    except OSError:
        os.close(fd)
        raise
    if stayed:
        return fd
    os.close(fd)
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)


def _works() -> bool:
    try:
        here = os.open("/", _FLAGS)
    except OSError:
        return False
    try:
        os.close(_open_on_mount(b".", here))
    except OSError:  # ENOSYS: before 5.6; EPERM: a seccomp filter that does not know it
        return False
    finally:
        os.close(here)
    return True


# One component, opened as a directory, quietly and without following a link. Raises OSError: EXDEV
# where another mount sits on it, ENOTDIR or ELOOP for a link.
open_on_mount: Callable[[bytes, int], int] = _open_on_mount if _works() else open_and_compare


def open_path_on_mount(root_fd: int, path: bytes) -> int:
    """The same for a relative path of several components; `b""` duplicates `root_fd`. Raises OSError.

    One component at a time, so that a path may be longer than PATH_MAX.
    """
    here = os.dup(root_fd)
    for part in path.split(b"/") if path else ():
        try:
            below = open_on_mount(part, here)
        finally:
            os.close(here)
        here = below
    return here
