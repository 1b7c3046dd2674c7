"""Small files that must survive a crash, and a lock between processes that change them."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

_LOCK_WAIT_SECONDS = 10.0


def write_atomically(directory: bytes, name: bytes, content: bytes) -> None:
    """Replace `directory/name` (mode 0600) so that a crash leaves the old content or the new.

    The file is on the disk before its name is, and the name when this returns. Raises OSError; then
    the old content is still there.
    """
    new = os.path.join(directory, name + b".new")
    # A leftover of a crash is overwritten: callers hold the lock, so nobody else writes it now.
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        os.rename(new, os.path.join(directory, name))
    except OSError:
        with suppress(OSError):
            os.unlink(new)
        raise
    sync_directory(directory)


def sync_directory(directory: bytes) -> None:
    """Bring renames in the directory to the disk (fsync(2): a file's fsync does not). Raises OSError."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def set_aside(path: bytes, now_ns: int) -> bytes:
    """Rename a damaged file to `NAME.damaged-TIME` beside it and return the new path. Raises OSError."""
    stem = path + b".damaged-" + stamp(now_ns)
    target, count = stem, 1
    while os.path.lexists(target):
        target, count = stem + b"-%d" % count, count + 1
    os.rename(path, target)
    return target


def stamp(now_ns: int) -> bytes:
    """A time in the name of a file: 20240131T235959Z."""
    return datetime.fromtimestamp(now_ns // 10**9, UTC).strftime("%Y%m%dT%H%M%SZ").encode()


@contextmanager
def exclusive(path: bytes) -> Iterator[None]:
    """Hold the lock file `path` (flock, released by any kind of death) for as long as the block lasts.

    Raises OSError: TimeoutError when another process holds it for 10 s.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + _LOCK_WAIT_SECONDS
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError("another process holds the lock") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(fd)
