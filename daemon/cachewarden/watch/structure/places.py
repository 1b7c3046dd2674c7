"""From handles, as the kernel names directories, to paths in a location, as they are now."""

import errno
import os
from collections.abc import Mapping

from cachewarden.kernel.handles import open_handle
from cachewarden.kernel.openat2 import open_on_mount
from cachewarden.mountinfo import relative
from cachewarden.tree import ABSENT, open_beneath

# What a location may have of changed directories before it counts as changed altogether: walking it costs
# less than looking up so many, and memory must not grow with what nobody asks for.
MANY = 10_000
_TRIES = 3


class TooManyError(Exception):
    """More than `MANY` directories are concerned."""


def paths_of(root_fd: int, handles: Mapping[bytes, bool]) -> frozenset[bytes] | None:
    """The paths below `root_fd` of directories given by handle, `b""` for the root; None: not known.

    The value says that a directory was moved itself: then all that lie below it are meant, too. What is gone
    is left out, and so is what lies elsewhere now: in both cases the directory that had the name is among
    `handles` itself. Raises nothing.
    """
    try:
        for _ in range(_TRIES):
            root = _path(root_fd)
            found = frozenset(
                path for handle, moved in handles.items() for path in _of(root_fd, root, handle, moved=moved)
            )
            if _path(root_fd) == root:  # else it, or what it lies in, was renamed meanwhile
                return found
    except (OSError, TooManyError):
        pass
    return None


def _of(root_fd: int, root: bytes, handle: bytes, *, moved: bool) -> list[bytes]:
    fd = open_if_there(root_fd, handle)
    if fd is None:
        return []
    try:
        path = relative(_path(fd), root)
        if path is None:
            return []
        return [path, *below(root_fd, path)] if moved else [path]
    finally:
        os.close(fd)


def open_if_there(mount_fd: int, handle: bytes) -> int | None:
    """An O_PATH descriptor of a directory by its handle, or None where it is gone. Raises OSError."""
    try:
        fd = open_handle(mount_fd, handle)
    except OSError as error:
        if error.errno == errno.ESTALE:
            return None
        raise
    if os.fstat(fd).st_nlink:
        return fd
    os.close(fd)  # deleted, and somebody still stands in it
    return None


def below(root_fd: int, top: bytes) -> list[bytes]:
    """Paths of all directories below the directory `top` of the same mount, without itself.

    What vanishes meanwhile, or cannot be read, is left out. Raises TooManyError; OSError where the
    filesystem fails.
    """
    found: list[bytes] = []
    pending = [top]
    while pending:
        path = pending.pop()
        for name in _directories_in(root_fd, path):
            found.append(os.path.join(path, name))
            pending.append(found[-1])
        if len(found) > MANY:
            raise TooManyError
    return found


def _directories_in(root_fd: int, path: bytes) -> list[bytes]:
    parent, _, name = path.rpartition(b"/")
    try:
        above = open_beneath(root_fd, parent)
        try:
            fd = open_on_mount(name, above) if name else os.dup(above)
        finally:
            os.close(above)
    except OSError as error:
        if error.errno in ABSENT | {errno.EXDEV, errno.EACCES}:
            return []
        raise
    try:
        with os.scandir(fd) as entries:
            return [os.fsencode(each.name) for each in entries if each.is_dir(follow_symlinks=False)]
    finally:
        os.close(fd)


def _path(fd: int) -> bytes:
    # In the mount that the descriptor was opened through. The kernel makes the path at one moment, so
    # that no rename on the way can mix two; one longer than a page says ENAMETOOLONG.
    return os.readlink(b"/proc/self/fd/%d" % fd)
