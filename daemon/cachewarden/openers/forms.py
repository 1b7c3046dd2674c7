"""How opens on a location's filesystem can be seen: the strongest form that the kernel grants there."""

import errno
import os
from enum import Enum
from typing import Final

from cachewarden.kernel.fanotify import ON_CHILD, OPEN, Group, Scope
from cachewarden.mountinfo import Mount, own_mounts

# EXDEV: a btrfs subvolume. EOPNOTSUPP: no file handles for whole filesystems (overlay). ENODEV: no
# filesystem id (FUSE; tmpfs before Linux 5.13).
_REFUSED: Final = frozenset({errno.EXDEV, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL})
_AT_FDCWD: Final = -100  # the paths are absolute


class Form(Enum):
    """From the strongest to none at all."""

    FILESYSTEM = "filesystem"
    DIRECTORIES = "directories"
    SAMPLES = "samples"
    NONE = "none"

    @property
    def sentence(self) -> str:
        """What the form sees and what it does not."""
        return _SENTENCES[self]


_SENTENCES = {
    Form.FILESYSTEM: "every open on the filesystem is seen, through whatever mount or container",
    Form.DIRECTORIES: "opens are seen in the directories that were there at the last look, not in newer ones",
    Form.SAMPLES: "users are found in samples of /proc; who opens and closes between two of them is missed",
    Form.NONE: "opens are not seen on this filesystem",
}


def establish(group: Group, root_fd: int, mount: Mount) -> Form:
    """Mark the filesystem of a location for opens, or say what is left. Marking again changes nothing.

    Raises OSError for what is no matter of the form (EPERM, ENOMEM, ENOSPC).
    """
    if mark_filesystem(group, OPEN, root_fd, mount):
        return Form.FILESYSTEM
    try:
        mark_directory(group, b".", root_fd)
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        return Form.NONE
    return Form.DIRECTORIES


def mark_filesystem(group: Group, mask: int, root_fd: int, mount: Mount) -> bool:
    """Report events of `mask` on the whole filesystem of a location; whether that is granted there.

    Raises OSError as `establish`.
    """
    for dir_fd, path in ((root_fd, b"."), *_whole(mount)):
        try:
            group.mark(Scope.FILESYSTEM, mask, dir_fd, path)
            return True
        except OSError as error:
            if error.errno not in _REFUSED and error.errno != errno.ENOENT:
                raise
    return False


def mark_directory(group: Group, name: bytes, dir_fd: int) -> None:
    """See what is opened directly in one directory. Raises OSError."""
    group.mark(Scope.INODE, OPEN | ON_CHILD, dir_fd, name)


def _whole(mount: Mount) -> list[tuple[int, bytes]]:
    """Where the top of a filesystem is mounted of which `mount` shows a subvolume.

    A mark there is for all subvolumes, and their handles tell them apart.
    """
    if mount.fstype != b"btrfs":
        return []
    try:
        table = own_mounts()
    except OSError:
        return []
    return [
        (_AT_FDCWD, os.path.join(each.point, b"."))
        for each in table
        if each.major_minor == mount.major_minor and each.root == b"/"
    ]
