"""Where all processes stand: one pass over /proc, by device and inode.

Not by path: a container's paths lead elsewhere here. Not by psutil: it calls a process whose leader has
exited a zombie and shows nothing of the threads that live on. Threads are looked at one by one where they
do not share their descriptors or directories (`kcmp`).
"""

import errno
import os
import stat
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from cachewarden.kernel import kcmp
from cachewarden.kernel.peek import Peeker

Inode = tuple[int, int]  # (st_dev, st_ino)

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# The process or thread, or its descriptor, is gone since it was listed: that is normal.
_VANISHED = frozenset({errno.ENOENT, errno.ESRCH})
_DENIED = frozenset({errno.EACCES, errno.EPERM})


@dataclass(frozen=True, slots=True)
class Standing:
    """One process stands somewhere. `kind`: cwd, root, exe, or directory (an open descriptor)."""

    kind: str
    pid: int


@dataclass(slots=True)
class Snapshot:
    """Where every process stood. `unreadable` are pids of those that did not let us look."""

    places: dict[Inode, list[Standing]] = field(default_factory=dict)
    unreadable: set[int] = field(default_factory=set)

    @property
    def complete(self) -> bool:
        """Whether every process could be read."""
        return not self.unreadable

    def standing_in(self, inodes: AbstractSet[Inode]) -> list[Standing]:
        """Who stands in one of `inodes`, each process and kind once."""
        found = (each for inode in self.places.keys() & inodes for each in self.places[inode])
        return list(dict.fromkeys(found))


def snapshot(proc: bytes = b"/proc") -> Snapshot:
    """Look at all processes now, ourselves left out. `proc` is where procfs is mounted."""
    found = Snapshot()
    looker = _Looker(found)
    fd = os.open(proc, _DIRECTORY)
    try:
        own = os.getpid()
        for name in os.listdir(fd):
            if name.isdigit() and int(name) != own:
                looker.process(name, fd)
    finally:
        os.close(fd)
    return found


class _Looker:
    def __init__(self, found: Snapshot) -> None:
        self._found = found
        self._peek = Peeker()
        self._kcmp = kcmp.works()

    def process(self, name: str, proc_fd: int) -> None:
        pid = int(name)
        tables: list[int] = []  # one thread for each descriptor table and pair of directories seen
        places: list[int] = []
        for task, tid in self._tasks(pid, name, proc_fd):
            if self._is_new(tid, tables, kcmp.FILES):
                self._descriptors(pid, task)
            if self._is_new(tid, places, kcmp.FS):
                self._link(pid, task, "cwd")
                self._link(pid, task, "root")
            if len(places) <= 1 or len(tables) <= 1:
                self._link(pid, task, "exe")

    def _tasks(self, pid: int, name: str, proc_fd: int) -> Iterator[tuple[int, int]]:
        try:
            tasks = os.open(f"{name}/task", _DIRECTORY, dir_fd=proc_fd)
        except OSError as error:
            self._missed(pid, error)
            return
        try:
            for tid in os.listdir(tasks):
                try:
                    task = os.open(tid, _DIRECTORY, dir_fd=tasks)
                except OSError as error:
                    self._missed(pid, error)
                    continue
                try:
                    yield task, int(tid)
                finally:
                    os.close(task)
        except OSError as error:
            self._missed(pid, error)
        finally:
            os.close(tasks)

    def _is_new(self, tid: int, seen: list[int], what: int) -> bool:
        if self._kcmp and any(kcmp.same(other, tid, what) for other in seen):
            return False
        seen.append(tid)
        return True

    def _descriptors(self, pid: int, task: int) -> None:
        try:
            fds = os.open("fd", _DIRECTORY, dir_fd=task)
        except OSError as error:
            self._missed(pid, error)
            return
        try:
            for fd in os.listdir(fds):
                try:
                    mode, dev, ino = self._peek(fd.encode(), fds)
                except OSError as error:
                    self._missed(pid, error)
                    continue
                if mode == stat.S_IFDIR:
                    self._note((dev, ino), Standing("directory", pid))
        except OSError as error:
            self._missed(pid, error)
        finally:
            os.close(fds)

    def _link(self, pid: int, task: int, kind: str) -> None:
        try:
            _, dev, ino = self._peek(kind.encode(), task)
        except OSError as error:  # ENOENT: a kernel thread has none
            self._missed(pid, error)
            return
        self._note((dev, ino), Standing(kind, pid))

    def _note(self, inode: Inode, standing: Standing) -> None:
        known = self._found.places.setdefault(inode, [])
        if standing not in known[-1:]:
            known.append(standing)

    def _missed(self, pid: int, error: OSError) -> None:
        if error.errno in _DENIED:
            self._found.unreadable.add(pid)
        elif error.errno not in _VANISHED:
            # A descriptor on something broken (EIO, ESTALE): it is not where our victims are.
            return
