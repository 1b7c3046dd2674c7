"""Every directory below another one, however deep: for what must not be overlooked."""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from cachewarden.kernel.openat2 import open_on_mount
from cachewarden.layouts.base import ASIDE, TRASH, directories, join
from cachewarden.tree import ABSENT, Tree, open_beneath, open_directory

# Descriptors for directories between the top and the current one; those above are opened again on the
# way back. A tree may be deeper than a process may have files open.
_OPEN_LEVELS = 64
_CLOSED = -1


@dataclass(slots=True)
class _Level:
    path: bytes
    fd: int
    inode: tuple[int, int]
    pending: list[bytes]


def descend(tree: Tree, top: bytes) -> Iterator[tuple[bytes, dict[bytes, int]]]:
    """(path, listing as `Tree.listing` gives it) of `top` and of each directory below it.

    Links are not followed, other mounts not entered: an entry with a mount in it stays anyway. What
    cannot be read is remembered in `tree.unreadable`. What eviction itself made is left out. A stack
    replaces recursion, and each step opens one component, so that depth costs nothing.
    """
    levels: list[_Level] = []
    try:
        try:
            fd = open_beneath(tree.root_fd, top)
        except OSError as error:
            _missed(tree, top, error)
            return
        yield top, _push(tree, levels, top, fd)
        while levels:
            level = levels[-1]
            if not level.pending:
                _leave(tree, levels)
                continue
            name = level.pending.pop()
            path = join(level.path, name)
            try:
                fd = open_on_mount(name, level.fd)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    _missed(tree, path, error)
                continue
            yield path, _push(tree, levels, path, fd)
    finally:
        for level in levels:
            _close(level)


def _push(tree: Tree, levels: list[_Level], path: bytes, fd: int) -> dict[bytes, int]:
    """Take over `fd` as the lowest level; what is in it."""
    level = _Level(path, fd, (0, 0), [])
    levels.append(level)
    if len(levels) > _OPEN_LEVELS:
        _close(levels[-_OPEN_LEVELS - 1])
    try:
        found = os.fstat(fd)
        level.inode = (found.st_dev, found.st_ino)
        # One level at a time: through this descriptor, `listing` has no path to walk.
        here = Tree(fd)
        listing = here.listing()
        tree.unreadable += [(path, number) for _, number in here.unreadable]
    except OSError as error:
        _missed(tree, path, error)
        return {}
    for name in [name for name in listing if name.startswith((TRASH, ASIDE))]:
        del listing[name]
        if name.startswith(ASIDE):
            tree.aside.add(path)
    level.pending = directories(listing)
    return listing


def _leave(tree: Tree, levels: list[_Level]) -> None:
    left = levels.pop()
    if levels and levels[-1].fd == _CLOSED:
        _open_again(tree, levels[-1], left.fd)
    _close(left)


def _open_again(tree: Tree, level: _Level, below: int) -> None:
    """From the directory below; from the root where that one was moved away meanwhile."""
    for way in (partial(open_directory, b"..", below), partial(open_beneath, tree.root_fd, level.path)):
        with suppress(OSError):
            fd = way()
            found = os.fstat(fd)
            if (found.st_dev, found.st_ino) == level.inode:
                level.fd = fd
                return
            os.close(fd)
    if level.pending:
        tree.unreadable.append((level.path, errno.ESTALE))
        level.pending = []


def _close(level: _Level) -> None:
    if level.fd != _CLOSED:
        os.close(level.fd)
        level.fd = _CLOSED


def _missed(tree: Tree, path: bytes, error: OSError) -> None:
    if error.errno not in ABSENT:
        tree.unreadable.append((path, error.errno or 0))
