"""The one definition of what is added up over a tree, for measuring and for eviction alike.

Eviction lists a victim again and compares with what was measured: both must count the same things,
so both add `os.stat_result`s (of lstat or fstat) to a `Sums`.
"""

import os
import stat
from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from typing import Self

from cachewarden.kernel.lstat_many import Plain

BLOCK = 512  # the unit of st_blocks, whatever the filesystem's block size: stat(2), inode(7)

_mode: Callable[[os.stat_result], int] = itemgetter(stat.ST_MODE)
_nlink: Callable[[os.stat_result], int] = itemgetter(stat.ST_NLINK)
_blocks = attrgetter("st_blocks")
_mtime = attrgetter("st_mtime_ns")
_ctime = attrgetter("st_ctime_ns")
_atime = attrgetter("st_atime_ns")


def allocated(found: os.stat_result) -> int:
    """Allocated bytes that count as usage: of a regular file; 0 for everything else.

    Blocks of directories and symbolic links are left out, as no choice of entries can be judged by
    them and filesystems disagree wildly about them.
    """
    return found.st_blocks * BLOCK if stat.S_ISREG(found.st_mode) else 0


def all_plain(found: Sequence[os.stat_result]) -> bool:
    """Whether all of at least one inode are regular files with a single link."""
    return (
        max(map(_nlink, found)) <= 1
        and min(map(_mode, found)) >= stat.S_IFREG
        and max(map(_mode, found)) < stat.S_IFREG + 0o10000
    )


class Sums:
    """Running sums over the inodes of a tree; each (device, inode) counts once, whatever its names.

    `bytes` are allocated bytes of regular files, `files` regular files, `inodes` everything:
    directories, links and special files too. `newest_ns` is the identity stamp: the newest mtime of
    everything, and the newest ctime of everything with one link and of directories. The ctime of a
    hard-linked inode is left out because it changes when a link elsewhere comes or goes. Renaming a
    directory changes its own ctime: compare before the rename.
    `atime_ns` is that of regular files alone (0 without any): looking into directories and reading
    links, as every scan of a cache does, refreshes theirs.
    """

    __slots__ = (
        "_directory_ctime", "_directory_mtime", "_linked", "_other_ctime", "_other_mtime",
        "atime_ns", "bytes", "files", "inodes", "newest_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self.bytes = 0
        self.files = 0
        self.inodes = 0
        self.newest_ns = 0
        self.atime_ns = 0
        self._other_mtime = self._other_ctime = 0
        self._directory_mtime = self._directory_ctime = 0
        self._linked: set[tuple[int, int]] | None = None  # most trees have no hard links at all

    def values(self) -> tuple[int, ...]:
        """All of them but which hard-linked inodes `add` met, to be compared and kept; see `of_values`."""
        return (
            self.bytes,
            self.files,
            self.inodes,
            self.newest_ns,
            self.atime_ns,
            self._other_mtime,
            self._other_ctime,
            self._directory_mtime,
            self._directory_ctime,
        )

    @classmethod
    def of_values(cls, values: Sequence[int]) -> Self:
        """Sums from what `values` gave."""
        made = cls()
        made.bytes, made.files, made.inodes, made.newest_ns, made.atime_ns = values[:5]
        made._other_mtime, made._other_ctime = values[5:7]
        made._directory_mtime, made._directory_ctime = values[7:9]
        return made

    @property
    def mtime_ns(self) -> int:
        """The newest mtime of everything but directories; of the directories without anything else."""
        return self._other_mtime or self._directory_mtime

    @property
    def ctime_ns(self) -> int:
        """The same for ctime, hard-linked inodes included."""
        return self._other_ctime or self._directory_ctime

    def add(self, found: os.stat_result) -> bool:
        """Count an inode. False when it was counted before, under another name."""
        if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
            inode = (found.st_dev, found.st_ino)
            if self._linked is None:
                self._linked = set()
            if inode in self._linked:
                return False
            self._linked.add(inode)
        self.count(allocated(found), int(stat.S_ISREG(found.st_mode)), 1)
        self.stamp(found)
        return True

    def add_plain(self, found: Sequence[os.stat_result]) -> None:
        """Count at least one inode, `all_plain`: the same as `add` for each, several times faster."""
        mtime, ctime, atime = (max(map(time, found)) for time in (_mtime, _ctime, _atime))
        self.add_summed(Plain(len(found), sum(map(_blocks, found)), mtime, ctime, atime))

    def add_summed(self, plain: Plain) -> None:
        """The same for such files that were summed up already."""
        self.count(plain.blocks * BLOCK, plain.files, plain.files)
        self.newest_ns = max(self.newest_ns, plain.mtime_ns, plain.ctime_ns)
        self._other_mtime = max(self._other_mtime, plain.mtime_ns)
        self._other_ctime = max(self._other_ctime, plain.ctime_ns)
        self.atime_ns = max(self.atime_ns, plain.atime_ns)

    def count(self, size: int, files: int, inodes: int) -> None:
        """Count allocated bytes, regular files and inodes without looking at any times."""
        self.bytes += size
        self.files += files
        self.inodes += inodes

    def stamp(self, found: os.stat_result) -> None:
        """Take an inode's times without counting it; doing so twice changes nothing."""
        mtime, ctime = found.st_mtime_ns, found.st_ctime_ns
        if stat.S_ISDIR(found.st_mode):
            self.newest_ns = max(self.newest_ns, mtime, ctime)
            self._directory_mtime = max(self._directory_mtime, mtime)
            self._directory_ctime = max(self._directory_ctime, ctime)
            return
        self.newest_ns = max(self.newest_ns, mtime, ctime if found.st_nlink <= 1 else 0)
        self._other_mtime = max(self._other_mtime, mtime)
        self._other_ctime = max(self._other_ctime, ctime)
        if stat.S_ISREG(found.st_mode):
            self.atime_ns = max(self.atime_ns, found.st_atime_ns)

    def merge(self, other: "Sums") -> None:
        """Add the sums over other inodes. Inodes that are in both count twice: count them apart."""
        self.count(other.bytes, other.files, other.inodes)
        self.newest_ns = max(self.newest_ns, other.newest_ns)
        self.atime_ns = max(self.atime_ns, other.atime_ns)
        self._other_mtime = max(self._other_mtime, other._other_mtime)
        self._other_ctime = max(self._other_ctime, other._other_ctime)
        self._directory_mtime = max(self._directory_mtime, other._directory_mtime)
        self._directory_ctime = max(self._directory_ctime, other._directory_ctime)
