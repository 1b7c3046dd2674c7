"""How much room a filesystem has: statvfs(3) and its traps."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Space:
    """A filesystem's size and what ordinary users may still take of it.

    `avail_bytes` is f_bavail and not f_bfree: the blocks reserved for root help nobody's cache.
    `avail_inodes` is f_favail. Filesystems that make inodes as they need them (btrfs) say 0 of 0:
    `counts_inodes` is false then, and no floor on inodes can be judged.
    """

    size_bytes: int
    avail_bytes: int
    size_inodes: int
    avail_inodes: int
    fsid: int
    readonly: bool

    @property
    def counts_inodes(self) -> bool:
        """Whether the filesystem has a fixed number of inodes."""
        return self.size_inodes > 0


def usage(at: int | bytes) -> Space:
    """Room on the filesystem of a descriptor (an O_PATH one will do, Linux 3.12) or path. Raises OSError.

    Sizes are in f_frsize units: statvfs(3) says so of all block counts, and on NFS f_bsize is the
    transfer size, a thousand times as much.
    """
    found = os.statvfs(at)
    return Space(
        size_bytes=found.f_blocks * found.f_frsize,
        avail_bytes=found.f_bavail * found.f_frsize,
        size_inodes=found.f_files,
        avail_inodes=found.f_favail,
        fsid=found.f_fsid,
        readonly=bool(found.f_flag & os.ST_RDONLY),
    )
