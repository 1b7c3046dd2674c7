"""Which directories a walk met, and by what a later look knows that no name came or went in them.

A tree has far fewer directories than files, and each costs one question without being opened. They are
kept packed, because there may be as many as a million: a few dozen bytes each, and no objects.
"""

import os
import stat
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

_RECORD: Final = struct.Struct("<QQQH")  # inode, mtime, ctime, length of the path that follows
_MASK: Final = (1 << 64) - 1  # times before 1970 and beyond 2262 exist; compared they need not be right
_UNSURE: Final = _MASK  # a time that no directory has

# Longer paths cannot be asked for in one call (PATH_MAX, 4096 with the zero at its end).
LONGEST: Final = 4095


class Seen(NamedTuple):
    """A directory as a walk found it: path relative to the location, inode, and times in ns."""

    path: bytes
    inode: int
    mtime_ns: int
    ctime_ns: int

    def is_still(self, found: os.stat_result) -> bool:
        """Whether this is the directory that was seen, not moved and with the same names in it."""
        return (
            stat.S_ISDIR(found.st_mode)
            and found.st_ino == self.inode
            and found.st_mtime_ns & _MASK == self.mtime_ns
            and found.st_ctime_ns & _MASK == self.ctime_ns
        )


class Directories:
    """The directories of each region, by the region's number.

    Times that are not older than `settled_ns` prove nothing, because the filesystem's clock may stand still
    for as long as the next change takes. `deep` are regions with directories that no single path reaches.
    """

    def __init__(self, settled_ns: int) -> None:
        self.settled_ns = settled_ns
        self.packed: dict[int, bytearray] = {}
        self.deep: set[int] = set()

    def add(self, region: int, path: str | None, found: os.stat_result) -> None:
        """Remember a directory; `path` is None where it is too long."""
        if path is None:
            self.deep.add(region)
            return
        name = os.fsencode(path)
        mtime, ctime = found.st_mtime_ns, found.st_ctime_ns
        if max(mtime, ctime) >= self.settled_ns:
            mtime = ctime = _UNSURE
        packed = self.packed.get(region)
        if packed is None:
            packed = self.packed[region] = bytearray()
        packed += _RECORD.pack(found.st_ino & _MASK, mtime & _MASK, ctime & _MASK, len(name)) + name

    def merge(self, other: "Directories") -> None:
        """Take in those of another part of the same tree."""
        for region, packed in other.packed.items():
            known = self.packed.get(region)
            if known is None:
                self.packed[region] = packed
            else:
                known += packed
        self.deep |= other.deep

    def of(self, region: int) -> Iterator[Seen]:
        """The directories of a region, its own first where it is one."""
        packed = self.packed.get(region, b"")
        place = 0
        while place < len(packed):
            inode, mtime, ctime, length = _RECORD.unpack_from(packed, place)
            place += _RECORD.size
            yield Seen(bytes(packed[place : place + length]), inode, mtime, ctime)
            place += length

    def first(self, region: int) -> Seen | None:
        """The region's own directory, where it is one."""
        return next(self.of(region), None)

    def changed(self, root_fd: int) -> frozenset[bytes]:
        """Paths of those that are not as they were seen. A path is not believed to lead anywhere else.

        A name on the way that was swapped for a link leads to another directory, with another inode.
        """
        found: set[bytes] = set()
        for region in self.packed:
            for seen in self.of(region):
                try:
                    now = os.stat(seen.path, dir_fd=root_fd, follow_symlinks=False) if seen.path else None
                    now = os.fstat(root_fd) if now is None else now
                except OSError:
                    found.add(seen.path)
                else:
                    if not seen.is_still(now):
                        found.add(seen.path)
        return frozenset(found)
