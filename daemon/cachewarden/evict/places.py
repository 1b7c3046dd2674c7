"""Where the trash of a location is.

As far out as possible: at the top of the location's mount, where no tool looks and no user reaches;
else beside the location; else inside it. On the same mount, because a rename to another one fails (EXDEV)
even where it is the same filesystem. Several locations share the one at the top.
"""

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass

from cachewarden.evict.naming import TRASH_NAME
from cachewarden.kernel.statx import mount_id
from cachewarden.tree import open_directory

# Directories whose tools scan every name in them: ours would be taken for a broken cache entry.
_SCANNED = frozenset({b"hub", b"checkpoints", b"blobs"})
_PATH = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(slots=True, eq=False)
class Place:
    """One possible trash: the directory `parent_fd` that it is in, and itself once it is open.

    `inside`: it is in the location itself, and the location's own measuring sees it. `refused` is the
    errno that keeps it from being used for good: another owner, no permission, another quota project.
    """

    parent_fd: int
    path: bytes
    inside: bool
    fd: int | None = None
    refused: int | None = None

    def open_existing(self) -> bool:
        """Open the trash if it is there and ours. Errors are remembered in `refused`."""
        if self.fd is not None and os.fstat(self.fd).st_nlink == 0:  # emptied and removed by another pass
            os.close(self.fd)
            self.fd = None
        if self.fd is None and self.refused is None:
            try:
                self.fd = self._open()
            except FileNotFoundError:
                return False
            except OSError as error:
                self.refused = error.errno or errno.EIO
        return self.fd is not None and self.refused is None

    def open_or_make(self) -> bool:
        """The same, made where it is missing. A full disk is not remembered: that passes."""
        if self.open_existing() or self.refused is not None:
            return self.refused is None
        try:
            os.mkdir(TRASH_NAME, 0o700, dir_fd=self.parent_fd)
        except FileExistsError:
            return self.open_existing()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                self.refused = error.errno or errno.EIO
            return False
        if self.open_existing() and self.fd is not None:
            owner = os.stat(b".", dir_fd=self.parent_fd)
            if os.geteuid() == 0 and owner.st_uid != 0:
                # In a user's directory it is the user's, so that his own `rm -rf` works.
                os.fchown(self.fd, owner.st_uid, owner.st_gid)
        return self.fd is not None and self.refused is None

    def _open(self) -> int:
        fd = open_directory(TRASH_NAME, self.parent_fd)
        found = os.fstat(fd)
        owners = {os.geteuid(), os.stat(b".", dir_fd=self.parent_fd).st_uid}
        # Somebody else's (made ahead of us in a directory like /tmp), or open to others: not ours.
        if (
            found.st_uid in owners
            and not stat.S_IMODE(found.st_mode) & 0o077
            and mount_id(fd) == mount_id(self.parent_fd)
        ):
            return fd
        os.close(fd)
        raise PermissionError(errno.EPERM, "not a private directory of ours", self.path)

    def remove_if_empty(self) -> None:
        """Remove the trash directory if nothing is in it. Whatever else is the case, it stays."""
        if self.fd is None:
            return
        with suppress(OSError):
            there = os.stat(TRASH_NAME, dir_fd=self.parent_fd, follow_symlinks=False)
            here = os.fstat(self.fd)
            if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino):
                os.rmdir(TRASH_NAME, dir_fd=self.parent_fd)
                os.close(self.fd)
                self.fd = None

    def close(self) -> None:
        """Close the descriptors."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.close(self.parent_fd)


def places(root_fd: int) -> list[Place]:
    """Where the trash of the location behind `root_fd` may be, best first. Raises OSError."""
    above = _ancestors(root_fd)
    path = os.readlink(b"/proc/self/fd/%d" % root_fd)
    found: list[Place] = []
    chosen = {len(above) - 1, min(1, len(above) - 1), 0}
    for steps, fd in enumerate(above):
        at = path
        for _ in range(steps):
            at = os.path.dirname(at)
        # Where the location is a mount of its own, inside is the only place; the trash is gone again
        # at the end of the pass.
        scanned = os.path.basename(at) in _SCANNED and len(above) > 1
        if steps in chosen and not scanned:
            found.append(Place(fd, os.path.join(at, TRASH_NAME), inside=steps == 0))
        else:
            os.close(fd)
    return found[::-1]


def _ancestors(root_fd: int) -> list[int]:
    """O_PATH descriptors of the location and of what is above it on the same mount, nearest first."""
    here = os.open(b".", _PATH, dir_fd=root_fd)
    mount, found = mount_id(here), [here]
    while True:
        try:
            above = os.open(b"..", _PATH, dir_fd=found[-1])
        except OSError:
            return found
        if mount_id(above) != mount or os.path.sameopenfile(above, found[-1]):
            os.close(above)
            return found
        found.append(above)
