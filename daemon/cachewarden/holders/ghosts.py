"""Deleted files that somebody still has open: `du` does not see them, `df` does, and no eviction helps."""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress

from cachewarden.kernel.peek import Peeker
from cachewarden.sums import allocated

_DELETED = b" (deleted)"  # how the kernel ends the link of a descriptor whose name is gone: proc(5)


def deleted_open(devices: Collection[int]) -> dict[int, int]:
    """Allocated bytes of files without a name that processes have open, by device, each inode once.

    Only for `devices` (st_dev), so that nothing is asked of a mount that may not answer. Processes
    that may not be looked at are left out: the figures are lower bounds then.
    """
    peek = Peeker()
    found: dict[tuple[int, int], int] = {}
    for directory, name in _deleted_descriptors():
        with suppress(OSError):
            path = os.path.join(directory, name)
            _, dev, ino = peek(path, -100)  # AT_FDCWD: the path is absolute
            if dev in devices and (dev, ino) not in found:
                status = os.stat(path)
                if status.st_nlink == 0:  # a name may well end in " (deleted)"
                    found[dev, ino] = allocated(status)
    sums = dict.fromkeys(devices, 0)
    for (dev, _), size in found.items():
        sums[dev] += size
    return sums


def _deleted_descriptors() -> Iterator[tuple[bytes, bytes]]:
    for pid in os.listdir(b"/proc"):
        if not pid.isdigit():
            continue
        directory = b"/proc/" + pid + b"/fd"
        with suppress(OSError):
            for name in os.listdir(directory):
                with suppress(OSError):
                    if os.readlink(directory + b"/" + name).endswith(_DELETED):
                        yield directory, name
