"""Telling the kernel not to report directories that lie outside every location and are busy.

A mark that ignores a directory inside a location would hide the next event there, so a directory is silenced
only when none of its parents is a location.
"""

import errno
import os
from collections.abc import Collection, Iterator, MutableMapping
from contextlib import suppress

from cachewarden.kernel.fanotify import ON_CHILD, OPEN, Group
from cachewarden.kernel.handles import open_handle
from cachewarden_policies.policy import HOUR

BUSY = 50
_AT_ONCE = 64
_LEVELS = 4096

Inode = tuple[int, int]


def silence(
    group: Group, root_fd: int, busy: list[bytes], roots: Collection[Inode], now_ns: int
) -> list[bytes]:
    """Report no opens in some of the directories with the handles `busy`; returns those silent now.

    `roots` are the locations on this filesystem, `now_ns` the wall clock. Left out is what has changed within
    an hour: who prepares an entry elsewhere and moves it in is at work in a young directory, and is an opener
    of the entry. Raises nothing.
    """
    silent = []
    for handle in busy[:_AT_ONCE]:
        with suppress(OSError):
            fd = open_handle(root_fd, handle)
            try:
                young = now_ns - os.fstat(fd).st_ctime_ns <= HOUR
                if not young and root_above(fd, roots) is None:
                    group.ignore(b"/proc/self/fd/%d" % fd, OPEN | ON_CHILD)
                    silent.append(handle)
            finally:
                os.close(fd)
    return silent


def root_above(
    fd: int, roots: Collection[Inode], passed: MutableMapping[Inode, Inode | None] | None = None
) -> Inode | None:
    """Which of `roots` a directory is or lies in: the innermost, or None. By identity, whatever the paths.

    `passed` keeps the answers of all directories on the way, for further questions of the same moment that
    come through the same mount: whoever makes a chain of thousands of directories would have us climb it from
    each of them.

    Raises OSError: FileNotFoundError where the mount of `fd` shows only a part of its filesystem, and the
    directory lies in another. Beyond 4096 levels it is OSError, too (ELOOP).
    """
    passed = {} if passed is None else passed
    way: list[Inode] = []
    found: Inode | None = None
    for inode in _lineage(fd):
        if inode in roots or inode in passed:
            found = inode if inode in roots else passed[inode]
            break
        way.append(inode)
    passed.update(dict.fromkeys(way, found))
    return found


def _lineage(fd: int) -> Iterator[Inode]:
    """A directory and all above it, up to where there is nothing above."""
    here = os.dup(fd)
    try:
        last: Inode | None = None
        for _ in range(_LEVELS):
            found = os.fstat(here)
            inode = (found.st_dev, found.st_ino)
            if inode == last:
                return
            yield inode
            last = inode
            above = os.open(b"..", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = above
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    finally:
        os.close(here)
