"""The mount table, as /proc/self/mountinfo tells it: proc_pid_mountinfo(5).

All paths are bytes. The kernel escapes blanks, backslashes, commas and the like in octal.
"""

import os
import re
from dataclasses import dataclass
from typing import Literal

from cachewarden.kernel.statx import mount_id

AtimeMode = Literal["strictatime", "relatime", "noatime"]

_OCTAL = re.compile(rb"\\([0-7]{3})")
_LAYER = re.compile(rb"(?:[^\\:]|\\.)+", re.DOTALL)
_BACKSLASH = re.compile(rb"\\(.)", re.DOTALL)

# Filesystems that one kernel has for itself: nobody else can open a file there without our seeing it.
# Everything that is not named here (NFS, SMB, FUSE, whatever comes) counts as shared.
_LOCAL = frozenset(
    b"bcachefs btrfs erofs exfat ext2 ext3 ext4 f2fs hfsplus iso9660 jfs msdos nilfs2 ntfs3 overlay "
    b"ramfs squashfs tmpfs udf vfat xfs zfs".split()
)


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo. `root` is the path within the filesystem that is mounted at `point`.

    `options` are the mount's own, `super_options` the filesystem's. `point` is as the namespace's
    own processes see it.
    """

    id: int
    parent: int
    major_minor: bytes
    root: bytes
    point: bytes
    fstype: bytes
    source: bytes
    options: tuple[bytes, ...]
    super_options: tuple[bytes, ...]

    @property
    def layers(self) -> tuple[bytes, ...]:
        """The directories an overlay is made of, as paths of the namespace that mounted it.

        Lower ones, upper and work directory. In `lowerdir` a colon separates and a backslash
        escapes (kernel docs, filesystems/overlayfs); `lowerdir+` of the newer mount interface names
        one layer each.
        """
        found: list[bytes] = []
        for option in self.super_options if self.fstype == b"overlay" else ():
            key, _, value = option.partition(b"=")
            if key == b"lowerdir":
                found += (_BACKSLASH.sub(rb"\1", layer) for layer in _LAYER.findall(value))
            elif key in (b"lowerdir+", b"datadir+", b"upperdir", b"workdir"):
                found.append(value)
        return tuple(found)


def parse(text: bytes) -> tuple[Mount, ...]:
    """The mounts of a mountinfo text, in its order: later ones may lie over earlier ones.

    Raises ValueError for a line that is no mountinfo.
    """
    return tuple(_parse_line(line) for line in text.split(b"\n") if line)


def _parse_line(line: bytes) -> Mount:
    ours, separator, theirs = line.partition(b" - ")
    fields, filesystem = ours.split(b" "), theirs.split(b" ")
    if not separator or len(fields) < 6 or len(filesystem) < 3:
        raise ValueError(f"not a line of mountinfo: {line!r}")
    return Mount(
        id=int(fields[0]),
        parent=int(fields[1]),
        major_minor=fields[2],
        root=unescape(fields[3]),
        point=unescape(fields[4]),
        fstype=unescape(filesystem[0]),
        source=unescape(filesystem[1]),
        options=tuple(fields[5].split(b",")),
        super_options=tuple(unescape(option) for option in filesystem[2].split(b",")),
    )


def unescape(field: bytes) -> bytes:
    """A field as it was before the kernel wrote blanks, backslashes and the like in octal."""
    return _OCTAL.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), field) if b"\\" in field else field


def is_network_or_unknown(fstype: bytes) -> bool:
    """Whether others may use the files without our kernel's knowing: other machines, a FUSE program."""
    return fstype not in _LOCAL


def atime_mode(mount: Mount) -> AtimeMode:
    """How far access times can be trusted on a mount: mount(8).

    A read-only mount updates none. A network filesystem shows options that its server need not
    honour, so its access times count for nothing.
    """
    if b"noatime" in mount.options or b"ro" in mount.options or b"ro" in mount.super_options:
        return "noatime"
    if is_network_or_unknown(mount.fstype):
        return "noatime"
    return "relatime" if b"relatime" in mount.options else "strictatime"


def own_mounts() -> tuple[Mount, ...]:
    """The mounts of our own namespace. Raises OSError."""
    with open("/proc/self/mountinfo", "rb") as text:
        return parse(text.read())


def mount_of(at: int | bytes) -> Mount:
    """The mount that a descriptor was opened through, or that a path leads to.

    Raises OSError; LookupError where the mount is gone from the table, or lies outside our root.
    """
    if isinstance(at, bytes):
        fd = os.open(at, os.O_PATH | os.O_CLOEXEC)
        try:
            return mount_of(fd)
        finally:
            os.close(fd)
    wanted = mount_id(at)
    for mount in own_mounts():
        if mount.id == wanted:
            return mount
    raise LookupError(f"no mount {wanted} in the mount table")


def relative(path: bytes, base: bytes) -> bytes | None:
    """`path` as seen from `base`, both absolute: `b""` for itself, None where it is not beneath.

    >>> relative(b"/a/b/c", b"/a"), relative(b"/ab", b"/a"), relative(b"/a", b"/")
    (b'b/c', None, b'a')
    """
    if path == base:
        return b""
    prefix = base if base.endswith(b"/") else base + b"/"
    return path[len(prefix) :] if path.startswith(prefix) else None
