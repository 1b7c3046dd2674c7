"""Where a granted lease does not prove that nobody uses a file: a second witness has to agree.

An overlay's lease tells of descriptors and not of mappings (the kernel maps the file of the layer, and the
overlay's own is closed), and a lower layer's file may be open by way of something else. On other local
filesystems leases should be right, because the kernel keeps the counts itself, but nobody has tried
them with this program. There an entry goes only where all of this holds:

- leases were tried here, a moment ago, and saw at least an open descriptor (`trial`);
- every inode of the entry is leased, as anywhere: opens under way, descriptors in flight over a socket and
  those that the kernel itself holds are seen by leases alone;
- two looks at every process of the machine, the second after the move, found none of them open or
  mapped; one process that could not be looked at, or a pid namespace of our own, and the answer is unknown;
- on an overlay, all of it lies in the upper layer and nothing of it in a lower one.

Where leases are refused (FUSE, some network filesystems) there is no fallback: /proc shows neither opens
under way nor descriptors in flight, and whoever serves such a filesystem can be asked past it.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from cachewarden.evict.case import Case
from cachewarden.evict.staying import StaysError
from cachewarden.evict.trash import Trash
from cachewarden.evict.trial import probe_file, try_leases
from cachewarden.evict.victim import Surroundings, Used
from cachewarden.kernel.handles import Handles
from cachewarden.kernel.layers import in_upper_layer_alone
from cachewarden.mountinfo import mount_of
from cachewarden_policies.reasons import KeepReason

_OVERLAY = b"overlay"
# One kernel has them for itself, its VFS counts who has what open, and none is stacked on another.
_DOUBTED = frozenset(b"bcachefs exfat hfsplus jfs msdos nilfs2 ntfs3 ramfs udf vfat zfs".split()) | {_OVERLAY}


@dataclass(frozen=True, slots=True)
class Fallback:
    """The second witness for one location. `layered`: it is on an overlay."""

    layered: bool = False

    def works(self, trash: Trash) -> bool:
        """Whether leases here see at least descriptors; tried in the trash. Raises nothing."""
        place = trash.make()
        if place is None or place.fd is None:
            return False
        try:
            with probe_file(place.fd) as name:
                return try_leases(name, place.fd).sees_open
        except (OSError, ValueError):
            return False

    def check_layer(self, case: Case) -> None:
        """Whether nothing of a victim comes from a lower layer. Before leases. Raises StaysError, OSError."""
        if not self.layered:
            return
        handles = Handles()
        held = [(b"", each.fd) for each in case.holding.directories]
        held += [(b"", each.fd) for each in case.holding.files]
        # A link is not open; what lies in a directory of the upper layer alone lies there itself.
        for name, fd in (*held, *((piece.home_name, piece.home_fd) for piece in case.pieces)):
            if not in_upper_layer_alone(handles.of(name, fd)):
                raise StaysError(KeepReason.UNKNOWN)

    def look(self, cases: Sequence[Case], surroundings: Surroundings) -> Used:
        """One look for several victims."""
        inodes = {file.inode for case in cases for file in case.holding.files}
        return surroundings.using(inodes)

    def check_users(self, case: Case, seen: Used) -> None:
        """Whether a look saw nobody, and saw everybody. Raises StaysError."""
        for file in case.holding.files:
            if file.inode in seen.users:
                raise StaysError(KeepReason.IN_USE, holders=tuple(seen.users[file.inode]))
        if not seen.complete:
            raise StaysError(KeepReason.UNKNOWN)


def fallback_for(root_fd: int) -> Fallback | None:
    """The fallback for a location whose leases are not trusted, or None where there is none."""
    if os.geteuid() != 0:  # the processes of others could not be looked at
        return None
    try:
        fstype = mount_of(root_fd).fstype
    except (OSError, LookupError):
        return None
    return Fallback(fstype == _OVERLAY) if fstype in _DOUBTED else None
