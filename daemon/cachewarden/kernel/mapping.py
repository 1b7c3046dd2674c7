"""A file mapped into our memory without any descriptor: mmap(2).

Not by the module mmap, whose objects keep a duplicate of the descriptor open.
"""

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

_libc = ctypes.CDLL(None, use_errno=True)
_mmap = _libc.mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_munmap = _libc.munmap
_munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_FAILED = ctypes.c_void_p(-1).value


@contextmanager
def mapped(fd: int) -> Iterator[None]:
    """The first page of an open file stays mapped in the block, also when `fd` is closed. Raises OSError."""
    address = _mmap(None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_PRIVATE, fd, 0)
    if address == _FAILED:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    try:
        yield
    finally:
        _munmap(address, mmap.PAGESIZE)
