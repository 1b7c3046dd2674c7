"""Renames that never replace anything: renameat2(2) RENAME_NOREPLACE, Linux 3.15 (glibc 2.28)."""

import ctypes
import errno
import os
import stat
from typing import Final

_NOREPLACE: Final = 1
# The filesystem (EINVAL: NFS, some FUSE) or the kernel, or a seccomp filter, does not know the flag.
_UNKNOWN: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})

_libc = ctypes.CDLL(None, use_errno=True)
_renameat2 = _libc.renameat2
_renameat2.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)


def rename_noreplace(old: bytes, old_dir: int, new: bytes, new_dir: int) -> None:
    """Rename `old` in the directory `old_dir` to `new` in `new_dir`; an existing `new` stays.

    Raises OSError: EEXIST for an existing `new`, EINVAL or another of its kind where the filesystem
    cannot promise that, and the errors of rename(2).
    """
    if _renameat2(old_dir, old, new_dir, new, _NOREPLACE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), old)


def rename_to_unique(old: bytes, old_dir: int, new: bytes, new_dir: int) -> None:
    """Rename to a name that nobody else makes up; a plain rename where there is no better one.

    The name is unique and its directory private, so that the plain rename, which would replace, finds
    nothing to replace. Raises OSError as rename(2).
    """
    try:
        rename_noreplace(old, old_dir, new, new_dir)
    except OSError as error:
        if error.errno not in _UNKNOWN:
            raise
        rename_plainly(old, old_dir, new, new_dir, replace=True)


def rename_back(old: bytes, old_dir: int, new: bytes, new_dir: int) -> None:
    """Rename to a place that somebody may have taken meanwhile; what is there then stays.

    Raises OSError: EEXIST or ENOTEMPTY when it is taken, otherwise as rename(2).
    """
    try:
        rename_noreplace(old, old_dir, new, new_dir)
    except OSError as error:
        if error.errno not in _UNKNOWN:
            raise
        rename_plainly(old, old_dir, new, new_dir, replace=False)


def rename_plainly(old: bytes, old_dir: int, new: bytes, new_dir: int, *, replace: bool) -> None:
    """The same without RENAME_NOREPLACE.

    rename(2) refuses to replace a directory that is not empty (ENOTEMPTY); anything else is linked first,
    which refuses to replace (EEXIST), and then unlinked. Raises OSError.
    """
    mode = os.stat(old, dir_fd=old_dir, follow_symlinks=False).st_mode
    if replace or stat.S_ISDIR(mode):
        os.rename(old, new, src_dir_fd=old_dir, dst_dir_fd=new_dir)
        return
    os.link(old, new, src_dir_fd=old_dir, dst_dir_fd=new_dir, follow_symlinks=False)
    os.unlink(old, dir_fd=old_dir)
