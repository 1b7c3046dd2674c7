"""What processes use below a directory, as their links in /proc tell by path: quick, and not the whole truth.

A process in a container has other paths, and one that uses a file through an overlay shows another
inode. What is seen here is in use; what is not seen may be. It serves plans, which take no lease, and
saves a pass from trying what plainly is in use.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from cachewarden.holders.processes import Inode
from cachewarden.kernel.peek import Peeker
from cachewarden.report import Holder

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDERS = (("open", "fd"), ("mapped", "map_files"))
_LINKS = ("cwd", "root", "exe")


@dataclass(frozen=True, slots=True)
class Sighting:
    """A process uses `path` (relative to the directory that was asked about), which is `inode` there."""

    path: bytes
    inode: Inode
    holder: Holder  # without names


def in_sight(below: bytes) -> list[Sighting]:
    """All that other processes use at or below the absolute path `below`, each process and kind once.

    Processes that may not be looked at are left out.
    """
    peek = Peeker()
    own = str(os.getpid())
    found: dict[Sighting, None] = {}
    for pid in (name for name in os.listdir("/proc") if name.isdigit() and name != own):
        found |= dict.fromkeys(_of_process(int(pid), os.fsencode(f"/proc/{pid}"), below, peek))
    return list(found)


def _of_process(pid: int, directory: bytes, below: bytes, peek: Peeker) -> Iterator[Sighting]:
    for kind, folder in _FOLDERS:
        with suppress(OSError):
            fd = os.open(os.path.join(directory, folder.encode()), _DIRECTORY)
            try:
                for name in os.listdir(fd):
                    yield from _link(os.fsencode(name), fd, below, Holder(kind, pid), peek)
            finally:
                os.close(fd)
    yield from _maps(pid, directory, below)
    with suppress(OSError):
        fd = os.open(directory, _DIRECTORY)
        try:
            for kind in _LINKS:
                yield from _link(kind.encode(), fd, below, Holder(kind, pid), peek)
        finally:
            os.close(fd)


def _maps(pid: int, directory: bytes, below: bytes) -> Iterator[Sighting]:
    """Mappings as an ordinary user sees them: following map_files takes a capability.

    On btrfs the device here is not stat's (proc_pid_maps(5) has it from the superblock): whoever
    compares inodes finds no match there, and a sighting less.
    """
    with suppress(OSError), open(os.path.join(directory, b"maps"), "rb") as lines:
        for line in lines:
            if below not in line:
                continue
            fields = line.rstrip(b"\n").split(maxsplit=5)
            path = fields[5].replace(b"\\012", b"\n") if len(fields) == 6 else b""
            if path == below or path.startswith(below + b"/"):
                major, minor = fields[3].split(b":")
                inode = os.makedev(int(major, 16), int(minor, 16)), int(fields[4])
                yield Sighting(path[len(below) + 1 :], inode, Holder("mapped", pid))


def _link(name: bytes, dir_fd: int, below: bytes, holder: Holder, peek: Peeker) -> Iterator[Sighting]:
    with suppress(OSError):
        path = os.readlink(name, dir_fd=dir_fd)
        if path == below or path.startswith(below + b"/"):
            _, dev, ino = peek(name, dir_fd)
            yield Sighting(path[len(below) + 1 :], (dev, ino), holder)
