"""Filesystems with their options about access times, programs that read once, and who goes first then."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from tests.system.trees import age, fill, loop_mounted

MODES = ("noatime", "relatime", "strictatime", "strictatime,lazytime")

# Opens, reads and closes what it is given, and ends.
_READ = "import sys\nfor path in sys.argv[1:]:\n with open(path, 'rb') as file:\n  file.read()"
# The same, and stays: a server that has its weights in memory.
_SERVE = _READ + "\nprint('loaded', flush=True)\nsys.stdin.read()"


def three_entries(root: str, names: str = "ABC") -> None:
    """A, B and C of 2 MiB, by their stamps unused for 40, 20 and 10 days."""
    for name, days in zip(names, (40, 20, 10), strict=True):
        fill(f"{root}/{name}/f", 2)
        age(f"{root}/{name}", days)


def read(*paths: str) -> None:
    """A program reads files and ends."""
    subprocess.run([sys.executable, "-S", "-E", "-c", _READ, *paths], check=True)


@contextlib.contextmanager
def model_server(*paths: str) -> Iterator[subprocess.Popen[str]]:
    """A program that opened files, read them, closed them and idles; killed by its pid at the end."""
    command = [sys.executable, "-S", "-E", "-c", _SERVE, *paths]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "loaded\n"
        yield server
    finally:
        server.kill()
        server.communicate()


@contextlib.contextmanager
def disk(base: str, mode: str, kind: str = "ext4") -> Iterator[str]:
    """A fresh filesystem in `base`, with `mode`; the path of an empty cache root in it (needs root)."""
    point = os.path.join(base, "disk")
    with loop_mounted(os.path.join(base, "image"), point, {"xfs": "320M"}.get(kind, "128M"), kind):
        subprocess.run(["mount", "-o", f"remount,{mode}", point], check=True)
        root = os.path.join(point, "root")
        os.mkdir(root)
        yield root


def times(root: str) -> dict[str, tuple[int, int, int]]:
    """Access, modification and change time of everything from `root` downwards, read without opening files.

    Directories are listed, which moves the access time of each on a strictatime mount: so theirs are
    taken before.
    """
    found: dict[str, tuple[int, int, int]] = {}
    pending = [root]
    while pending:
        path = pending.pop()
        status = os.lstat(path)
        found[path] = (status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns)
        if os.path.isdir(path) and not os.path.islink(path):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOATIME)
            try:
                pending += [os.path.join(path, name) for name in os.listdir(fd)]
            finally:
                os.close(fd)
    return found
