"""A mount namespace of one's own: unshare(2) CLONE_NEWNS, Linux 2.4.19; needs CAP_SYS_ADMIN.

For a process that shows whether we see what others do in theirs; nothing else here ever mounts anything.
"""

import ctypes
import os
from typing import Final

_CLONE_NEWNS: Final = 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000

_libc = ctypes.CDLL(None, use_errno=True)
_mount = _libc.mount
_mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_void_p)


def leave_namespace() -> None:
    """Go on in a copy of our mount namespace that propagates nothing to others. Raises OSError.

    The working directory moves along into the copy; open descriptors stay with the old one.
    """
    _check(_libc.unshare(_CLONE_NEWNS))
    _check(_mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))


def bind_working_directory() -> None:
    """Mount the working directory over itself. Raises OSError."""
    _check(_mount(b".", b".", None, _MS_BIND, None))


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
