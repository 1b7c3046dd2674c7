"""What a walk found, region by region, before anybody decides whose it is."""

import os
import stat
from dataclasses import dataclass, field

from cachewarden.kernel.lstat_many import Plain
from cachewarden.scan.directories import Directories
from cachewarden.sums import BLOCK, Sums, allocated


@dataclass(frozen=True, slots=True)
class Linked:
    """An inode with several names. `seen` of its `links` were found, in `regions`."""

    regions: tuple[int, ...]
    seen: int
    links: int
    bytes: int
    files: int

    def and_also(self, other: "Linked") -> "Linked":
        """The same inode, found under more names. What was looked at last counts."""
        regions = self.regions
        if other.regions != regions:
            regions = tuple(sorted({*regions, *other.regions}))
        return Linked(regions, self.seen + other.seen, other.links, other.bytes, other.files)


@dataclass(slots=True)
class Tally:
    """Sums per region, and everything that cannot be summed. Tallies of parts of a tree merge.

    Inodes with several names are in `linked` alone, by (device, inode); the regions' sums have only
    their times. `roots` are (device, inode, owner) of what was found at a region's own path.
    `unreadable` and `mounts` say which region they lie in. `found_files` and `found_bytes` are for
    a progress display: they count each name. `directories` is None where nobody wants to know them.
    """

    sums: dict[int, Sums] = field(default_factory=dict)
    linked: dict[tuple[int, int], Linked] = field(default_factory=dict)
    roots: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    unreadable: list[tuple[bytes, int, int]] = field(default_factory=list)
    mounts: list[tuple[bytes, int]] = field(default_factory=list)
    excluded: set[int] = field(default_factory=set)
    found_files: int = 0
    found_bytes: int = 0
    directories: Directories | None = None

    def of(self, region: int) -> Sums:
        """The region's sums."""
        sums = self.sums.get(region)
        if sums is None:
            sums = self.sums[region] = Sums()
        return sums

    def add(self, region: int, found: os.stat_result) -> None:
        """Count one inode, or one name of it."""
        sums = self.of(region)
        sums.stamp(found)
        size, files = allocated(found), int(stat.S_ISREG(found.st_mode))
        if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
            self._link((found.st_dev, found.st_ino), Linked((region,), 1, found.st_nlink, size, files))
        else:
            sums.count(size, files, 1)
        self.found_files += files
        self.found_bytes += size

    def add_directory(self, region: int, path: str | None, found: os.stat_result) -> None:
        """Count a directory; `path` is relative to the location, None where it is too long."""
        self.add(region, found)
        if self.directories is not None:
            self.directories.add(region, path, found)

    def add_plain(self, region: int, plain: Plain) -> None:
        """Count regular files with one link each."""
        self.of(region).add_summed(plain)
        self.found_files += plain.files
        self.found_bytes += plain.blocks * BLOCK

    def at_root(self, region: int, found: os.stat_result) -> None:
        """Remember what is at a region's own path."""
        self.roots[region] = (found.st_dev, found.st_ino, found.st_uid)

    def merge(self, other: "Tally") -> None:
        """Take in the tally of another part of the same tree."""
        for region, sums in other.sums.items():
            self.of(region).merge(sums)
        for inode, linked in other.linked.items():
            self._link(inode, linked)
        self.roots |= other.roots
        self.unreadable += other.unreadable
        self.mounts += other.mounts
        self.excluded |= other.excluded
        self.found_files += other.found_files
        self.found_bytes += other.found_bytes
        if self.directories is not None and other.directories is not None:
            self.directories.merge(other.directories)

    def _link(self, inode: tuple[int, int], linked: Linked) -> None:
        known = self.linked.get(inode)
        self.linked[inode] = linked if known is None else known.and_also(linked)
