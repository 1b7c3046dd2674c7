"""Opening a location: the one place where a path from the configuration is turned into a descriptor.

Everything below a location is reached by descriptor and follows nothing. The way *to* it must be
followed by name, and on the way a link is trusted only where an ordinary user could not have put it:
`/home` may be a link that root made, `/home/alice/cache` may not be one that alice made.
"""

import errno
import os
import stat

from cachewarden.errors import LocationAbsentError, LocationUnavailableError
from cachewarden.paths import show
from cachewarden.tree import open_directory

_MOST_LINKS = 40  # as the kernel: MAXSYMLINKS, path_resolution(7)


def open_root(path: bytes, trusted: frozenset[int] = frozenset({0})) -> int:
    """A descriptor of the directory `path` (absolute). Links are followed only where the link's owner
    and the owner of the directory that holds it are in `trusted` (user ids) and nobody else may
    write there. Raises LocationUnavailableError with a sentence (LocationAbsentError where nothing has that
    path); the caller closes the descriptor.
    """
    parts = [part for part in reversed(path.split(b"/")) if part]
    here = open_directory(b"/")
    links = 0
    try:
        while parts:
            part = parts.pop()
            try:
                below = open_directory(part, here)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENOTDIR) or not _is_link(part, here):
                    raise
                links += 1
                target = _trusted_target(part, here, trusted) if links <= _MOST_LINKS else None
                if target is None:
                    raise LocationUnavailableError(
                        f"{show(path)}: {show(part)} on the way is a link that others could change"
                    ) from error
                if target.startswith(b"/"):
                    os.close(here)
                    here = open_directory(b"/")
                parts.extend(each for each in reversed(target.split(b"/")) if each and each != b".")
                continue
            os.close(here)
            here = below
    except OSError as error:
        os.close(here)
        kind = LocationAbsentError if error.errno == errno.ENOENT else LocationUnavailableError
        raise kind(f"{show(path)}: {_sentence(error)}") from error
    except LocationUnavailableError:
        os.close(here)
        raise
    return here


def _is_link(name: bytes, dir_fd: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode)


def _trusted_target(name: bytes, dir_fd: int, trusted: frozenset[int]) -> bytes | None:
    directory = os.fstat(dir_fd)
    link = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    sticky = bool(directory.st_mode & stat.S_ISVTX)  # there, only the link's owner may replace it
    writable = bool(directory.st_mode & 0o022) and not sticky
    if directory.st_uid not in trusted or link.st_uid not in trusted or writable:
        return None
    return os.readlink(name, dir_fd=dir_fd)


def _sentence(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "is not there"
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return "is not a directory"
    return os.strerror(error.errno or 0)
