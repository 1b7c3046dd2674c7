"""File handles: what a directory is called, whatever its path. name_to_handle_at(2), Linux 2.6.39.

A handle names an inode and its generation, so that a directory made anew under the same inode number has
another one. It is unique within its filesystem (on btrfs, over all subvolumes), and it is what fanotify
reports instead of a path. Nothing is opened: a handle can be asked for while leases are held.
"""

import ctypes
import errno
import os
import struct
from typing import Final

_EMPTY_PATH: Final = 0x1000  # AT_EMPTY_PATH: the descriptor itself
# AT_HANDLE_FID, Linux 6.5: a handle that tells inodes apart and need not lead back to them. Overlays have
# only that kind; filesystems that have both give the same one.
_HANDLE_FID: Final = 0x200
_MAX_BYTES: Final = 128  # MAX_HANDLE_SZ
_HEAD = struct.Struct("=Ii")  # handle_bytes, handle_type

_libc = ctypes.CDLL(None, use_errno=True)
_name_to_handle_at = _libc.name_to_handle_at
_buffer_type = ctypes.c_char * (_HEAD.size + _MAX_BYTES)


class Handles:
    """Asks for handles. Reuses one buffer, so an instance belongs to one thread."""

    def __init__(self) -> None:
        self._found = _buffer_type()
        self._mount = ctypes.c_int()
        self._mount_at = ctypes.byref(self._mount)
        self._flags = _HANDLE_FID

    def of(self, name: bytes, dir_fd: int) -> bytes:
        """The handle of `name` in the directory `dir_fd` (`b""`: of that itself); no link is followed.

        The bytes of struct file_handle, header included, as `fanotify.Event.handle` has them. Raises
        OSError: EOPNOTSUPP where the filesystem has no handles.
        """
        empty = 0 if name else _EMPTY_PATH
        if self._ask(name, dir_fd, self._flags | empty) != 0:
            code = ctypes.get_errno()
            if code != errno.EINVAL or not self._flags:
                raise OSError(code, os.strerror(code), name)
            self._flags = 0  # before Linux 6.5
            return self.of(name, dir_fd)
        length: int = _HEAD.unpack_from(self._found)[0]
        return self._found.raw[: _HEAD.size + length]

    def _ask(self, name: bytes, dir_fd: int, flags: int) -> int:
        _HEAD.pack_into(self._found, 0, _MAX_BYTES, 0)
        answer: int = _name_to_handle_at(dir_fd, name, self._found, self._mount_at, flags)
        return answer


def open_handle(mount_fd: int, handle: bytes) -> int:
    """An O_PATH descriptor of what a handle names, on the filesystem of `mount_fd`: open_by_handle_at(2).

    Needs CAP_DAC_READ_SEARCH. Raises OSError: ESTALE where it is gone, EOPNOTSUPP for a handle that does not
    lead back.
    """
    fd: int = _libc.open_by_handle_at(mount_fd, handle, os.O_PATH | os.O_CLOEXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd
