"""The way to a place: without links that others could change, and without touching what may not answer.

The mount table says what lies on which filesystem before anything there is looked at, so that a file
server that is down, or an automounter, is left alone.
"""

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field

from cachewarden.mountinfo import Mount, is_network_or_unknown, own_mounts
from cachewarden.paths import show
from cachewarden.tree import ABSENT

_MOST_LINKS = 40  # as the kernel: MAXSYMLINKS, path_resolution(7)


@dataclass(frozen=True, slots=True)
class Notice:
    """A path that was not looked at, or not wholly, and why: a sentence that follows the path."""

    path: bytes
    reason: str


@dataclass(slots=True)
class Ways:
    """Finds ways, and remembers where it may not go. `trusted` are users whose links are followed.

    `network`: go to network and unknown filesystems too.
    """

    trusted: Collection[int]
    network: bool
    notices: dict[bytes, Notice] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = field(default_factory=own_mounts)
    _points: dict[bytes, Mount] = field(init=False)

    def __post_init__(self) -> None:
        self._points = {mount.point: mount for mount in self.mounts}  # later ones lie over earlier ones

    def directory(self, path: bytes) -> bytes | None:
        """`path` (absolute) as it is called without links, when it is a directory that may be looked at.

        None when it is not; `notices` then has the reason, unless it is simply not there.
        """
        parts = [part for part in reversed(path.split(b"/")) if part]
        real, links = b"", 0
        while parts:
            part = parts.pop()
            if part == b"..":  # of a link's target; `real` has no links, so this is the kernel's answer
                real = os.path.dirname(real).rstrip(b"/")
                continue
            here = real + b"/" + part
            if not self.may_look(here):
                return None
            try:
                found = os.lstat(here)
            except OSError as error:
                if error.errno not in ABSENT:
                    self.note(here, f"cannot be looked at: {os.strerror(error.errno or 0)}")
                return None
            if stat.S_ISLNK(found.st_mode):
                links += 1
                if links > _MOST_LINKS or not self._is_trusted(found, real or b"/"):
                    self.note(here, "is a link that others could change; what it leads to was not looked at")
                    return None
                target = os.readlink(here)
                real = b"" if target.startswith(b"/") else real
                parts += [each for each in reversed(target.split(b"/")) if each not in (b"", b".")]
            elif stat.S_ISDIR(found.st_mode):
                real = here
            else:
                return None
        return real or b"/"

    def note(self, path: bytes, reason: str) -> None:
        """Remember once for each path."""
        self.notices.setdefault(path, Notice(path, reason))

    def may_look(self, path: bytes) -> bool:
        """Whether what has this path may be touched at all; the reason is in `notices`."""
        mount = self._mount(path)
        if self.network or mount is None or not is_network_or_unknown(mount.fstype):
            return True
        if mount.fstype not in _KERNELS:
            self.note(
                mount.point, f"is a network or unknown filesystem ({show(mount.fstype)}) and was left out"
            )
        return False

    def _mount(self, path: bytes) -> Mount | None:
        """The mount that carries an absolute path without links, by the table alone."""
        while path not in self._points and path != b"/":
            path = os.path.dirname(path)
        return self._points.get(path)

    def _is_trusted(self, link: os.stat_result, directory: bytes) -> bool:
        """As `enforce.root` has it: nobody else can have put the link there."""
        around = os.lstat(directory)
        writable = around.st_mode & 0o022 and not around.st_mode & stat.S_ISVTX
        return link.st_uid in self.trusted and around.st_uid in self.trusted and not writable


# Nobody keeps a cache in one of these; that they are no local disk needs no telling.
_KERNELS = frozenset(
    b"proc sysfs devtmpfs devpts cgroup cgroup2 bpf debugfs tracefs securityfs pstore mqueue hugetlbfs "
    b"configfs efivarfs binfmt_misc nsfs rpc_pipefs fusectl selinuxfs".split()
)
