"""Whether two tasks share their descriptor table or their directories: kcmp(2), Linux 3.5.

Threads nearly always do, and looking at one table for each of 200 threads would cost 200 times as
much; but they need not (unshare(2) CLONE_FILES), and then a look at the leader alone misses them.
"""

import ctypes
import errno
import os
import platform
from typing import Final

_NUMBERS: Final = {"x86_64": 312, "aarch64": 272, "ppc64le": 354, "s390x": 343, "riscv64": 272}
_NUMBER: Final = _NUMBERS.get(platform.machine())
FILES: Final = 2  # the descriptor table
FS: Final = 3  # cwd and root

_libc = ctypes.CDLL(None, use_errno=True)


def same(first: int, second: int, what: int) -> bool:
    """Whether two task ids share `what` (FILES or FS).

    False also when that cannot be found out (no such task, no permission, a kernel without
    CONFIG_KCMP): then both have to be looked at.
    """
    if _NUMBER is None:
        return False
    zero = ctypes.c_ulong(0)
    return bool(_libc.syscall(ctypes.c_long(_NUMBER), first, second, what, zero, zero) == 0)


def works() -> bool:
    """Whether this kernel has kcmp at all."""
    if _NUMBER is None:
        return False
    if same(os.getpid(), os.getpid(), FILES):
        return True
    return ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM)
