"""Who has a file open or mapped, for people: pids by device and inode, names by psutil.

Slow (each descriptor and mapping of each process), so only asked about entries that turned out to be in use
and by `explain`. It decides nothing: the lease did.
"""

import os
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress

import psutil

from cachewarden.holders.processes import Inode
from cachewarden.kernel.peek import Peeker
from cachewarden.report import Holder

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Through map_files and not by the device in maps: on btrfs that is another number than stat's.
_KINDS = (("open", "fd"), ("mapped", "map_files"))


def who(inodes: AbstractSet[Inode]) -> Mapping[Inode, tuple[Holder, ...]]:
    """The processes that use each of `inodes`, in order of pid; a file nobody visible uses is missing."""
    found: dict[Inode, list[Holder]] = {}
    peek = Peeker()
    own = str(os.getpid())
    for pid in sorted((name for name in os.listdir("/proc") if name.isdigit()), key=int):
        if pid == own:
            continue
        for inode, kind in dict.fromkeys(_uses(pid, inodes, peek)):
            found.setdefault(inode, []).append(named(Holder(kind, int(pid))))
    return {inode: tuple(holders) for inode, holders in found.items()}


def named(holder: Holder) -> Holder:
    """The same holder with the name of its program and of its user, where they can be found out."""
    if holder.pid is None:
        return holder
    with suppress(psutil.Error, OSError):
        process = psutil.Process(holder.pid)
        with process.oneshot():
            return Holder(holder.kind, holder.pid, process.name(), _user(process))
    return holder


def _user(process: psutil.Process) -> str:
    try:
        return process.username()
    except (psutil.Error, KeyError):
        return str(process.uids().real)


def _uses(pid: str, inodes: AbstractSet[Inode], peek: Peeker) -> Iterator[tuple[Inode, str]]:
    with suppress(OSError):
        for tid in os.listdir(f"/proc/{pid}/task"):
            for kind, directory in _KINDS:
                # Mappings belong to the process; only a leader that has exited hides them.
                yield from _links(f"/proc/{pid}/task/{tid}/{directory}", kind, inodes, peek)
    yield from _links(f"/proc/{pid}/map_files", "mapped", inodes, peek)
    yield from _maps(pid, inodes)
    with suppress(OSError):
        exe = os.stat(f"/proc/{pid}/exe")
        if (exe.st_dev, exe.st_ino) in inodes:
            yield (exe.st_dev, exe.st_ino), "exe"


def _maps(pid: str, inodes: AbstractSet[Inode]) -> Iterator[tuple[Inode, str]]:
    """As an ordinary user sees them: following map_files takes a capability, proc_pid_map_files(5)."""
    with suppress(OSError), open(f"/proc/{pid}/maps", "rb") as lines:
        for line in lines:
            device, inode = line.split(maxsplit=5)[3:5]
            major, minor = device.split(b":")
            mapped = os.makedev(int(major, 16), int(minor, 16)), int(inode)
            if mapped[1] and mapped in inodes:  # inode 0: memory of no file
                yield mapped, "mapped"


def _links(path: str, kind: str, inodes: AbstractSet[Inode], peek: Peeker) -> Iterator[tuple[Inode, str]]:
    with suppress(OSError):
        fd = os.open(path, _DIRECTORY)
        try:
            for name in os.listdir(fd):
                with suppress(OSError):
                    _, dev, ino = peek(name.encode(), fd)
                    if (dev, ino) in inodes:
                        yield (dev, ino), kind
        finally:
            os.close(fd)
