"""What the tests of eviction share: victims of real trees, and real processes that are in the way."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cachewarden.clock import SystemClock
from cachewarden.evict import Evictor, LiveOpeners, Trash, Victim
from cachewarden.evict.recovery import Recovered, empty, recover
from cachewarden.evict.walk import walk
from cachewarden.holders import Machine
from cachewarden.sums import Sums

DAY = 86_400 * 10**9


class Cache:
    """A location in a temporary directory, and evictions from it."""

    def __init__(self, root, **options):
        self.root = os.fsencode(root)
        self.options = options
        os.makedirs(self.root, exist_ok=True)

    def put(self, path, size=4096):
        """Make a file with its directories.

        Its blocks are reserved first: while ext4 writes out what it had put off, stat tells of none of them
        for a moment, and the entry would have changed between measuring and eviction, as it does not for
        caches that are older than a moment.
        """
        full = os.path.join(self.root, os.fsencode(path))
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb", buffering=0) as file:
            if size:
                os.posix_fallocate(file.fileno(), 0, size)
            file.write(b"x" * size)
        return full

    def has(self, path):
        """Whether a name is there, also a dangling link."""
        return os.path.lexists(os.path.join(self.root, os.fsencode(path)))

    def path(self, name):
        """The absolute path of a name."""
        return os.path.join(self.root, os.fsencode(name))

    def tree(self, name=""):
        """Everything below, with types, sizes and inodes: equal before and after a roll back."""
        found = {}
        start = self.path(name)
        for base, directories, files in os.walk(start):
            for each in (*directories, *files):
                full = os.path.join(base, each)
                seen = os.lstat(full)
                found[os.path.relpath(full, start)] = (seen.st_ino, stat.S_IFMT(seen.st_mode), seen.st_size)
        return found

    def victim(self, *paths, **changes):
        """A victim as an inventory of this moment would give it."""
        sums = Sums()
        paths = tuple(os.fsencode(path) for path in paths)
        for path in paths:
            add(sums, self.path(path))
        first = os.lstat(self.path(paths[0]))
        values = {
            "name": paths[0], "paths": paths, "dev": first.st_dev, "ino": first.st_ino,
            "listed_bytes": sums.bytes, "listed_files": sums.files, "newest_ns": sums.newest_ns,
        }  # fmt: skip
        return Victim(**(values | changes))

    def deep_victim(self, name):
        """The same of a tree that is too deep for paths: by descriptors."""
        sums = Sums()

        def enter(fd, found):
            sums.add(found)
            below = []
            for each in os.listdir(fd):
                child = os.stat(each, dir_fd=fd, follow_symlinks=False)
                if stat.S_ISDIR(child.st_mode):
                    below.append(each)
                else:
                    sums.add(child)
            return below

        root = os.open(self.root, os.O_RDONLY)
        try:
            walk(root, name, enter)
        finally:
            os.close(root)
        path, first = os.fsencode(name), os.lstat(self.path(name))
        return Victim(path, (path,), first.st_dev, first.st_ino, sums.bytes, sums.files, sums.newest_ns)

    @contextmanager
    def trash(self):
        """The location's trash."""
        fd = os.open(self.root, os.O_RDONLY)
        try:
            with Trash(fd, self.root) as trash:
                yield trash
        finally:
            os.close(fd)

    def evict(self, *victims, **options):
        """Evict; the outcomes, or the only one."""
        options = self.options | options
        surroundings = options.pop("surroundings", None) or Machine()
        now_ns = options.pop("now_ns", time.time_ns())
        clock = options.pop("clock", None) or SystemClock()
        with (
            self.trash() as trash,
            Evictor(trash, surroundings, now_ns=now_ns, clock=clock, **options) as evictor,
        ):
            outcomes = evictor.evict_all(victims)
        return outcomes if len(victims) > 1 else outcomes[0]

    def sweep(self):
        """Leave nothing of this test in the trash, which may be that of the whole machine."""
        with self.trash() as trash:
            empty(trash)

    def recover(self, *directories) -> list[Recovered]:
        """What a start of the service does first."""
        with self.trash() as trash:
            return recover(trash, (b"", *directories))


def add(sums, path):
    """Add a path and everything below it, with lstat."""
    found = os.lstat(path)
    sums.add(found)
    if stat.S_ISDIR(found.st_mode):
        for name in os.listdir(path):
            add(sums, os.path.join(path, name))


def at_step(step, action):
    """A hook for `at` that acts once, at one step."""
    done = []

    def hook(name):
        if name == step and not done:
            done.append(name)
            action()

    return hook


class Opened(LiveOpeners):
    """Openers as a set of names; `later` are known only after so many drains."""

    def __init__(self, *names, later=0):
        self.names, self.left = set(names), later

    def drain(self):
        self.left -= 1

    def holds(self, entry):
        return entry in self.names and self.left < 0


_READY = "\nprint('ready', flush=True)\nimport time; time.sleep(120)\n"


@contextmanager
def process(code, *args, wrap=(), cwd=None) -> Iterator[subprocess.Popen]:
    """A Python program that runs `code`, its arguments as bytes in `args`, says it is ready and sleeps."""
    program = "import os,sys; args=[os.fsencode(each) for each in sys.argv[1:]]\n" + code + _READY
    command = [*wrap, sys.executable, "-c", program, *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=cwd) as running:
        try:
            assert running.stdout.readline() == b"ready\n"
            yield running
        finally:
            running.send_signal(signal.SIGKILL)
            running.wait()
            running.stdout.close()
