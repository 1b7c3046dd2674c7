"""One pass at a time on a location: a lock between services, commands and threads.

flock(2) on `RUNTIME_DIR/locks/MAJOR:MINOR-INODE` (hexadecimal, of the location's root), so that two
names of one directory share a lock, and a process that dies in any way has released it. The files
lie in the runtime directory and not in the location: a lock on a user's own directory could be taken
by the user, for ever. They are never removed: removing one that somebody is about to lock would give
two processes a lock each.

Root's service uses /run, a user's service its own runtime directory: these two do not exclude each
other on one location. The eviction of a single entry is safe all the same, since each victim is
taken by leases and one rename; together they may only evict more than one alone would have.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

from cachewarden.clock import Clock
from cachewarden.errors import LocationLockedError, LocationUnavailableError
from cachewarden.paths import show
from cachewarden.report import iso

_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds a lock; it is written into the lock file."""

    pid: int
    command: str
    since_ns: int


def lock_path(runtime_dir: bytes, dev: int, ino: int) -> bytes:
    """The lock file of the location whose root is this inode."""
    name = f"{os.major(dev):x}:{os.minor(dev):x}-{ino:x}".encode()
    return os.path.join(runtime_dir, b"locks", name)


@contextmanager
def location_lock(
    path: bytes, *, command: str, clock: Clock, wait_ns: int = 0, stop: threading.Event | None = None
) -> Iterator[None]:
    """Hold the lock file `path` (of `lock_path`) for as long as the block lasts.

    `command` names us to others. Raises LocationLockedError, which names the holder, when it is
    still held after `wait_ns` or when `stop` is set; LocationUnavailableError when there is no place
    for lock files: without the lock there must be no eviction.
    """
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LocationUnavailableError(f"cannot make the lock file {show(path)}: {error.strerror}") from error
    try:
        _wait(fd, clock, wait_ns, stop or threading.Event())
        _write(fd, json.dumps(asdict(LockHolder(os.getpid(), command, clock.wall_ns()))).encode())
        try:
            yield
        finally:
            _write(fd, b"")
            # Not by closing alone: a child that was forked meanwhile has the descriptor too.
            fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


def _wait(fd: int, clock: Clock, wait_ns: int, stop: threading.Event) -> None:
    # By trying again and not by a blocking flock: that cannot be given a time, and stopping the
    # service would have to interrupt it by a signal.
    end = clock.monotonic_ns() + wait_ns
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            left = (end - clock.monotonic_ns()) / 1e9
            if left <= 0 or stop.wait(min(_POLL_SECONDS, left)):
                raise LocationLockedError(_sentence(_read(fd))) from None


def _sentence(holder: LockHolder | None) -> str:
    if holder is None:
        return "another process is at work on this location"
    since = iso(holder.since_ns)
    return f"{holder.command!r} (pid {holder.pid}) is at work on this location since {since}"


def _write(fd: int, content: bytes) -> None:
    # It is for people: a full runtime directory must not stop a pass.
    with suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, content, 0)


def _read(fd: int) -> LockHolder | None:
    try:
        found = json.loads(os.pread(fd, 65536, 0))
        return LockHolder(int(found["pid"]), str(found["command"]), int(found["since_ns"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
