"""Telling the kernel not to report directories that lie outside every location and are busy.

A mark that ignores a directory inside a location would hide the next opener, so a directory is silenced only
when none of its parents is a location, and it has not changed for an hour: who prepares an entry elsewhere
and moves it in is at work in a young one.
"""

import os
from collections.abc import Collection
from contextlib import suppress

from cachewarden.kernel.fanotify import Group
from cachewarden.kernel.handles import open_handle
from cachewarden_policies.policy import HOUR

BUSY = 50
_AT_ONCE = 64
_LEVELS = 256

Inode = tuple[int, int]


def silence(
    group: Group, root_fd: int, busy: list[bytes], roots: Collection[Inode], now_ns: int
) -> list[bytes]:
    """Silence some of the directories with the handles `busy`; returns those that are silent now.

    `roots` are the locations on this filesystem, `now_ns` the wall clock. Raises nothing.
    """
    silent = []
    for handle in busy[:_AT_ONCE]:
        with suppress(OSError):
            fd = open_handle(root_fd, handle)
            try:
                if now_ns - os.fstat(fd).st_ctime_ns > HOUR and _outside(fd, roots):
                    group.ignore(b"/proc/self/fd/%d" % fd)
                    silent.append(handle)
            finally:
                os.close(fd)
    return silent


def _outside(fd: int, roots: Collection[Inode]) -> bool:
    """Whether neither a directory nor any above it is one of `roots`. Not known means no."""
    here = os.dup(fd)
    try:
        last: Inode | None = None
        for _ in range(_LEVELS):
            found = os.fstat(here)
            inode = (found.st_dev, found.st_ino)
            if inode in roots:
                return False
            if inode == last:
                return True
            last = inode
            above = os.open(b"..", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = above
        return False
    finally:
        os.close(here)
