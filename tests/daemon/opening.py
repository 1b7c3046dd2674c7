"""A location with a feed, and programs that open what is in it: shared by the tests of live openers."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

from cachewarden.clock import SystemClock
from cachewarden.inventory import Claim, SharedClaim, Split
from cachewarden.openers import OpenerFeed, Setting
from cachewarden.scan import scan

KEY = "cache:/location"


def fill(root, *paths):
    """Make small files."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"x")


def plain(root):
    """Each child is an entry."""
    return Split(
        "plain", tuple(Claim(os.fsencode(name), (os.fsencode(name),)) for name in sorted(os.listdir(root)))
    )


def claims(*named, shared=()):
    """A split with these (name, paths, shared paths)."""
    made = tuple(Claim(name, paths, shared=uses) for name, paths, uses in named)
    return Split("hub", made, tuple(SharedClaim(path) for path in shared))


class Site:
    """One location under a feed."""

    def __init__(self, root, feed, key=KEY):
        self.root, self.feed, self.key = root, feed, key

    def index(self, split=None, **options):
        """Look at the location, as a pass does after its survey."""
        fd = os.open(self.root, os.O_RDONLY)
        try:
            return self.feed.index(self.key, fd, scan(fd, split or plain(self.root)), **options)
        finally:
            os.close(fd)

    def held(self):
        """Entries that are held now, after draining."""
        asked = self.feed.for_location(self.key)
        asked.drain()
        names = self.feed._located[self.key].look.entries
        return {os.fsdecode(name) for name in names if asked.holds(name)}

    def pids(self, entry):
        """Who holds an entry."""
        self.feed.drain(self.key)
        return {holder.pid for holder in self.feed.openers(self.key, os.fsencode(entry))}


@contextmanager
def feeding(root, *, clock=None, memory=None, start=False, **setting):
    """A feed with one location that is indexed already."""
    feed = OpenerFeed(clock or SystemClock(), memory, Setting(**setting))
    if start:
        feed.start()
    try:
        site = Site(root, feed)
        site.index()
        yield site
    finally:
        feed.stop()


class Program:
    """A Python program that runs `code`, says that it is done, and then stays.

    `ready` is the line to wait for; a program may say something before it is done.
    """

    def __init__(self, code, *arguments, wrap=(), executable=None, stdin=None, ready=b"done\n"):
        text = code + "\nimport sys, time\nsys.stdout.write('done\\n'); sys.stdout.flush()\ntime.sleep(600)\n"
        command = [*wrap, executable or sys.executable, "-S", "-E", "-c", text, *map(str, arguments)]
        self._ready = ready
        self.process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, start_new_session=True)

    def __enter__(self):
        assert self.process.stdout.readline() == self._ready
        return self

    def __exit__(self, *_):
        self.end()

    @property
    def pid(self):
        return self.process.pid

    def end(self):
        """Kill it, with what it was wrapped in, and wait for its end."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


OPEN_AND_CLOSE = "import os, sys\nfor path in sys.argv[1:]: os.close(os.open(path, os.O_RDONLY))"


def until(condition, seconds=5.0):
    """Wait for a condition; its last value."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return found
