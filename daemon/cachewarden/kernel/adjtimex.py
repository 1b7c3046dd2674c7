"""What the kernel knows of the wall clock's correctness: adjtimex(2), in Linux since long before 2.6."""

import ctypes
import os
from dataclasses import dataclass
from typing import Final

_STA_UNSYNC: Final = 0x0040  # linux/timex.h


class _Timex(ctypes.Structure):
    """The C library's struct timex on 64-bit machines; what follows `tick` is not read."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("constant", ctypes.c_long),
        ("precision", ctypes.c_long),
        ("tolerance", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("fraction", ctypes.c_long),
        ("tick", ctypes.c_long),
        ("rest", ctypes.c_char * 128),
    )


_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Discipline:
    """`synchronized`: a time service keeps the clock, and told the kernel so not long ago.

    `max_error_ns` is how wrong the clock is at most then, in nanoseconds. `seconds` since the epoch is when
    that was asked.
    """

    synchronized: bool
    max_error_ns: int
    seconds: int


def discipline() -> Discipline:
    """Ask, and change nothing, which takes no right. Raises OSError (EPERM under some seccomp filters)."""
    found = _Timex()  # modes = 0: only read
    if _libc.adjtimex(ctypes.byref(found)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return Discipline(not found.status & _STA_UNSYNC, found.maxerror * 1000, found.seconds)
