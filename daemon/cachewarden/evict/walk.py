"""Walking a tree of any depth with a handful of descriptors, without recursion and without paths."""

import errno
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from cachewarden.evict.victim import Inode
from cachewarden.kernel.openat2 import open_on_mount
from cachewarden.tree import open_directory

_OPEN_LEVELS = 16  # levels above that are closed, and opened again through `..` on the way back


@dataclass(slots=True)
class _Level:
    name: str
    inode: Inode
    fd: int
    todo: list[str]


# Sees a directory (descriptor, how it looks) and says into which of its children to go on.
Enter = Callable[[int, os.stat_result], list[str]]
# Sees a directory again when everything below is done: its parent's descriptor, its name.
Leave = Callable[[int, str], None]


def walk(parent_fd: int, name: str, enter: Enter, leave: Leave | None = None) -> None:
    """Go through the directory `name` and everything below it, parents before and after children.

    Never follows a link and never steps onto another mount. Raises OSError (EXDEV: another mount; ESTALE:
    somebody moved directories about meanwhile) and whatever `enter` and `leave` raise.
    """
    levels: list[_Level] = []
    with ExitStack() as at_end:
        at_end.callback(_close_all, levels)
        levels.append(_descend(parent_fd, name, enter))
        while levels:
            level = levels[-1]
            if level.todo:
                levels.append(_descend(level.fd, level.todo.pop(), enter))
                _shed(levels)
                continue
            above = levels[-2] if len(levels) > 1 else None
            if above is not None and above.fd < 0:
                above.fd = _ascend(level.fd, above.inode)
            os.close(levels.pop().fd)
            if leave is not None:
                leave(above.fd if above is not None else parent_fd, level.name)


def _close_all(levels: list[_Level]) -> None:
    for level in levels:
        if level.fd >= 0:
            os.close(level.fd)


def _descend(parent_fd: int, name: str, enter: Enter) -> _Level:
    fd = open_on_mount(os.fsencode(name), parent_fd)
    try:
        found = os.fstat(fd)
        return _Level(name, (found.st_dev, found.st_ino), fd, enter(fd, found))
    except BaseException:
        os.close(fd)
        raise


def _shed(levels: list[_Level]) -> None:
    if len(levels) > _OPEN_LEVELS:
        level = levels[-_OPEN_LEVELS - 1]
        if level.fd >= 0:
            os.close(level.fd)
            level.fd = -1


def _ascend(fd: int, expected: Inode) -> int:
    above = open_directory(b"..", fd)
    found = os.fstat(above)
    if (found.st_dev, found.st_ino) == expected:
        return above
    os.close(above)
    raise OSError(errno.ESTALE, "a directory was moved while it was being walked")
