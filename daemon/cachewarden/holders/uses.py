"""Who has files open or mapped, and whether that is the whole answer: for where leases do not tell all.

By device and inode as stat(2) gives them. The links of /proc/PID/map_files lead to the file that was
mapped, also on an overlay, where the device and inode in /proc/PID/maps were those of the layer
below until Linux 6.8.
"""

import errno
import os
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from cachewarden.holders.processes import Inode
from cachewarden.kernel import kcmp
from cachewarden.kernel.peek import Peeker
from cachewarden.report import Holder

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DENIED = frozenset({errno.EACCES, errno.EPERM})
# The first pid namespace has this inode number since Linux 3.8 (PROC_PID_INIT_INO, linux/proc_ns.h).
_FIRST_NAMESPACE = 0xEFFFFFFC


@dataclass(slots=True)
class Uses:
    """What one look saw. `unreadable` are processes that did not let us look.

    `all_visible` is false in a pid namespace of our own (a container), or where others are hidden from us:
    there are processes then that we know nothing of.
    """

    found: dict[Inode, list[Holder]] = field(default_factory=dict)
    unreadable: set[int] = field(default_factory=set)
    all_visible: bool = True

    @property
    def complete(self) -> bool:
        """Whether an inode that was not found is used by no process of this machine."""
        return self.all_visible and not self.unreadable

    @property
    def users(self) -> Mapping[Inode, list[Holder]]:
        """The processes that use each inode, pids only."""
        return self.found


def uses(inodes: AbstractSet[Inode]) -> Uses:
    """Look now, ourselves left out. Opens nothing outside /proc. Raises OSError without /proc."""
    looker = _Looker(inodes)
    own = os.getpid()
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    looker.seen.all_visible = sees_all_processes() and 1 in pids
    for pid in pids:
        if pid != own:
            looker.process(pid)
    return looker.seen


def sees_all_processes() -> bool:
    """Whether /proc is the one of the machine's first pid namespace, and we are in it."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino == _FIRST_NAMESPACE and os.readlink("/proc/self") == str(
            os.getpid()
        )
    except OSError:
        return False


class _Looker:
    def __init__(self, inodes: AbstractSet[Inode]) -> None:
        self.seen = Uses()
        self._inodes = inodes
        self._peek = Peeker()
        self._kcmp = kcmp.works()

    def process(self, pid: int) -> None:
        try:
            threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
        except OSError as error:
            self._missed(pid, error)
            return
        tables: list[int] = []  # one thread for each descriptor table
        mappings = False
        for tid in threads:
            if not (self._kcmp and any(kcmp.same(other, tid, kcmp.FILES) for other in tables)):
                tables.append(tid)
                for inode in self._links(pid, f"/proc/{pid}/task/{tid}/fd"):
                    self._note(inode, Holder("open", pid))
            if not mappings:  # a leader that has exited shows none, though its threads live on
                for inode in self._links(pid, f"/proc/{tid}/map_files"):
                    mappings = True
                    self._note(inode, Holder("mapped", pid))

    def _links(self, pid: int, path: str) -> Iterator[Inode]:
        try:
            fd = os.open(path, _DIRECTORY)
        except OSError as error:
            self._missed(pid, error)
            return
        try:
            for name in os.listdir(fd):
                try:
                    _, dev, ino = self._peek(name.encode(), fd)
                except OSError as error:
                    self._missed(pid, error)
                    continue
                yield dev, ino
        except OSError as error:
            self._missed(pid, error)
        finally:
            os.close(fd)

    def _note(self, inode: Inode, holder: Holder) -> None:
        if inode in self._inodes:
            known = self.seen.found.setdefault(inode, [])
            if holder not in known:
                known.append(holder)

    def _missed(self, pid: int, error: OSError) -> None:
        # Anything else: it ended meanwhile, or its descriptor is on something broken, which is not ours.
        if error.errno in _DENIED:
            self.seen.unreadable.add(pid)
