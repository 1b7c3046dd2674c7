"""Locations under a structure feed, and what changes in them: shared by the tests of it."""

import os
import subprocess
import sys
from contextlib import contextmanager

from cachewarden.watch.structure import StructureFeed

KEY = "cache:/location"


class Site:
    """A location of a feed. `passes` is how many passes its changes asked for, counted each time."""

    def __init__(self, root, feed, asked, key=KEY):
        self.root, self.feed, self.asked, self.key = os.fsencode(root), feed, asked, key

    def take(self):
        """What a pass does before it measures: paths as text, or None."""
        granted = self.feed.watch(self.key, self.root)
        fd = os.open(self.root, os.O_RDONLY)
        try:
            found = self.feed.take(self.key, fd)
        finally:
            os.close(fd)
        assert granted
        return None if found is None else {os.fsdecode(path) for path in found}

    @property
    def asks(self):
        """Whether a pass was asked for since the last time that this was asked."""
        had = self.key in self.asked
        self.asked[:] = [key for key in self.asked if key != self.key]
        return had


@contextmanager
def seeing(root, state, **options):
    """A feed with one location that was asked for once already."""
    state.mkdir(exist_ok=True)
    asked = []
    feed = StructureFeed(asked.append, os.fsencode(state), **options)
    try:
        site = Site(root, feed, asked)
        site.first = site.take()
        yield site
    finally:
        feed.stop()


def by_others(code, *arguments):
    """Run Python code in a process of its own, to its end: our own changes ask for no pass."""
    text = "import os, shutil, sys\nargs = sys.argv[1:]\n" + code
    subprocess.run([sys.executable, "-S", "-E", "-c", text, *map(str, arguments)], check=True)


def fill(root, *paths):
    """Make small files, by somebody else."""
    by_others(
        "for path in args:\n  os.makedirs(os.path.dirname(path), exist_ok=True)\n  open(path, 'w').close()",
        *(os.path.join(root, path) for path in paths),
    )
