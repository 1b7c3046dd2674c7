"""Where a killed eviction may have left pieces under names beside their own, as on a full disk."""

import os
import stat

from cachewarden.evict.naming import parse
from cachewarden.kernel.openat2 import open_path_on_mount


def left_at_the_top(root_fd: int) -> bool:
    """Whether the location's own directory has such a name. Raises OSError."""
    return any(_is_ours(name) for name in os.listdir(root_fd))


def directories_beside(root_fd: int) -> set[bytes]:
    """All directories of a location that have such names; the location's own one always counts.

    Looks into every directory, whatever a layout says of it: with parts of an entry away, its directory may
    look like something else, and its pieces have to be found all at once. Only after a crash. What
    cannot be read, and other mounts, are left out.
    """
    found, todo = {b""}, [b""]
    while todo:
        path = todo.pop()
        try:
            fd = open_path_on_mount(root_fd, path)
        except OSError:
            continue
        try:
            for child in os.listdir(fd):
                if _is_ours(child):
                    found.add(path)
                elif _is_directory(child, fd):
                    name = os.fsencode(child)
                    todo.append(path + b"/" + name if path else name)
        finally:
            os.close(fd)
    return found


def _is_ours(name: str) -> bool:
    known = parse(os.fsencode(name)) if name.startswith(".cw-") else None
    return known is not None and known.beside


def _is_directory(name: str, dir_fd: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode)
    except OSError:
        return False
