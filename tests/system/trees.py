"""Trees, ages, processes and mounts that the system tests build: the real things, no doubles."""

import contextlib
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

MIB = 2**20
DAY = 86_400

# Each of these runs in a child, does what its name says, prints a line when it has, and waits.
_OPENED = "import sys; f = open(sys.argv[1], 'rb'); print('ready', flush=True); sys.stdin.read()"
# Not through the module mmap: its objects keep a duplicate of the descriptor open.
_MAPPED = """
import ctypes, mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
whole = ctypes.c_size_t(os.fstat(fd).st_size)
libc.mmap(None, whole, mmap.PROT_READ, mmap.MAP_PRIVATE, fd, ctypes.c_long(0))
os.close(fd)
print('ready', flush=True)
sys.stdin.read()
"""
_LOCKED = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(fd, fcntl.LOCK_EX)
print('ready', flush=True)
sys.stdin.read()
"""


def fill(path: str | bytes, mebibytes: float = 1) -> None:
    """A file of random bytes, so that no filesystem stores it smaller; its directories are made too."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(os.urandom(int(mebibytes * MIB)))


def fill_many(root: str) -> None:
    """Sixty entries of two hundred files, so that evicting them takes a while."""
    for number in range(60):
        path = os.path.join(root, f"e{number:02}")
        os.mkdir(path)
        for file in range(200):
            with open(f"{path}/{file}", "wb") as made:
                made.write(b"x")


def write(path: str, text: str) -> None:
    """A small text file; its directories are made too."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def age(root: str | bytes, days: float) -> None:
    """Set access and modification time of everything from `root` downwards; links are not followed."""
    then = time.time() - days * DAY
    _stamp(root, then)
    if os.path.isdir(root) and not os.path.islink(root):
        for entry in os.scandir(root):
            age(entry.path, days)
        _stamp(root, then)


def _stamp(path: str | bytes, seconds: float) -> None:
    os.utime(path, (seconds, seconds), follow_symlinks=False)


def allocated(root: str | bytes) -> int:
    """Usage as cachewarden defines it: blocks of regular files, each inode once, directories left out."""
    seen: dict[tuple[int, int], int] = {}
    pending = [os.fsencode(root)]
    while pending:
        try:
            children = list(os.scandir(pending.pop()))
        except FileNotFoundError:  # evicted meanwhile
            continue
        for entry in children:
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISDIR(found.st_mode):
                pending.append(entry.path)
            elif stat.S_ISREG(found.st_mode):
                seen[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(seen.values())


def contents(root: str | bytes) -> dict[bytes, bytes]:
    """Every regular file below `root` with its bytes, to show that something was left alone."""
    found = {}
    for directory, _, names in os.walk(os.fsencode(root)):
        for name in names:
            path = os.path.join(directory, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, os.fsencode(root))] = file.read()
    return found


@contextlib.contextmanager
def process(arguments: Sequence[str], ready: str = "ready") -> Iterator[subprocess.Popen[str]]:
    """A child that has printed `ready`; it is killed by its pid when the block ends."""
    child = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        said = child.stdout.readline().strip()
        assert said == ready, f"the child said {said!r} instead of {ready!r}"
        yield child
    finally:
        child.kill()
        child.communicate()


def _script(text: str, path: str) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    return process([sys.executable, "-S", "-E", "-c", text, path])


def holding_open(path: str) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """A process that has the file open."""
    return _script(_OPENED, path)


def holding_mapped(path: str) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """A process that has the file mapped and no descriptor of it, as loaders of weights do."""
    return _script(_MAPPED, path)


def holding_lock(path: str) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """A process that holds an exclusive flock on an existing file."""
    return _script(_LOCKED, path)


def in_own_mounts(commands: str) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """A shell in a mount namespace of its own that runs `commands` and then waits (needs root)."""
    shell = f"set -e; {commands}; echo ready; exec cat"
    return process(["unshare", "-m", "--propagation", "private", "bash", "-c", shell])


@contextlib.contextmanager
def loop_mounted(image: str, point: str, size: str = "64M", kind: str = "ext4") -> Iterator[None]:
    """A fresh filesystem in a file, mounted at `point` (needs root)."""
    subprocess.run(["truncate", "-s", size, image], check=True)
    force = {"ext4": "-F", "xfs": "-f", "btrfs": "-f"}[kind]
    subprocess.run([f"mkfs.{kind}", "-q", force, image], check=True, capture_output=True)
    os.makedirs(point, exist_ok=True)
    subprocess.run(["mount", "-o", "loop", image, point], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", point], check=True)


@contextlib.contextmanager
def mounted(arguments: Sequence[str], point: str) -> Iterator[None]:
    """`mount ARGUMENTS POINT` for the length of the block (needs root)."""
    subprocess.run(["mount", *arguments, point], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", point], check=True)


def wait_until(happened: Callable[[], object], seconds: float = 20, every: float = 0.05) -> None:
    """Call `happened()` until it is true. Raises AssertionError when it is not within `seconds`."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"nothing of the kind within {seconds} s: {happened}"
        time.sleep(every)
