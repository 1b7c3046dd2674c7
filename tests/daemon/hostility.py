"""What the tests of hostile users share: a treasure that must not change, and users who do harm."""

import fcntl
import os
import signal
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.daemon.evicting import Cache

from cachewarden.clock import SystemClock
from cachewarden.evict import Evictor, recover
from cachewarden.holders import Machine
from cachewarden.report import Spared
from cachewarden_policies.reasons import KeepReason

MALLORY = 2001


class Place:
    """A home of a user, and what others have beside it: `treasure`. All may read, nobody may write."""

    def __init__(self, base):
        self.base = Path(base)
        self.home = self.base / "home"
        self.treasure = self.base / "treasure"
        for path in (self.home, self.treasure / "sub"):
            path.mkdir(parents=True)
        for number in range(40):
            (self.treasure / "sub" / f"f{number}").write_text(f"gold {number}")
        self.cache = Cache(self.home / "cache")
        self.give(self.home, self.home / "cache")
        self.before = self.look()

    def give(self, *paths):
        """The user owns these."""
        for path in paths:
            os.chown(path, MALLORY, MALLORY, follow_symlinks=False)

    def put(self, path, size=4096):
        """A file of the user's in his cache, with its directories."""
        full = self.cache.put(path, size)
        while full != self.cache.root:
            self.give(full)
            full = os.path.dirname(full)
        return self.cache.path(path)

    def look(self):
        """Everything in the treasure: content, mode, owner, inode, time of the last change of content."""
        found = {}
        for base, directories, files in os.walk(self.treasure):
            for name in (*directories, *files):
                path = Path(base, name)
                seen = path.lstat()
                content = path.read_bytes() if stat.S_ISREG(seen.st_mode) else b""
                found[str(path)] = (content, seen.st_mode, seen.st_uid, seen.st_ino, seen.st_mtime_ns)
        return found

    def evict(self, *names, times=5):
        """Evict entries; again when it was not known in time, on a machine that tests keep busy."""
        for _ in range(times):
            outcomes = self.cache.evict(*map(self.cache.victim, names))
            found = outcomes if len(names) > 1 else [outcomes]
            if not any(isinstance(each, Spared) and each.reason is KeepReason.UNKNOWN for each in found):
                break
            if not all(map(self.cache.has, names)):
                break
        return outcomes

    @property
    def unharmed(self):
        """Whether the treasure is what it was."""
        return self.look() == self.before


@pytest.fixture
def place(needs_root):
    """Not below pytest's own directory, which other users may not enter."""
    with tempfile.TemporaryDirectory() as base:
        os.chmod(base, 0o755)
        made = Place(base)
        yield made
        made.cache.sweep()


@contextmanager
def user(act, *, again=True):
    """A process of the user that calls `act()` over and over, whatever fails, until the block ends."""
    ready, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(MALLORY, MALLORY, MALLORY)
            os.setresuid(MALLORY, MALLORY, MALLORY)
            signal.signal(signal.SIGIO, signal.SIG_IGN)
            while True:
                with suppress(OSError):
                    act()
                with suppress(OSError):
                    os.write(writer, b".")
                    os.close(writer)
                if not again:
                    signal.pause()
        finally:
            os._exit(1)
    os.close(writer)
    try:
        assert os.read(ready, 1) == b"."
        os.close(ready)
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def locked(path):
    """An action: take a lock and keep it."""

    def act():
        fd = os.open(path, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)

    return act


@contextmanager
def within(seconds):
    """What is inside must not take longer: one entry may cost something, a pass may not hang."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def evict_beside(place):
    """Evict the entry with the trash beside the location, as where the top of the mount is not to be had."""

    with place.cache.trash() as trash:
        trash.places[0].refused = 1
        recover(trash)
        with Evictor(trash, Machine(), now_ns=time.time_ns(), clock=SystemClock()) as evictor:
            return evictor.evict(place.cache.victim("e"))
