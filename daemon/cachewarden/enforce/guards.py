"""Hard guards that are known before anything is tried: layout, mounts, pins, other nodes.

Whether an entry is in use is not asked here: that answer is only worth something at the moment of
the eviction, and `evict` asks the kernel then.
"""

import os
from contextlib import suppress
from dataclasses import dataclass

from cachewarden.inventory import Entry
from cachewarden.ledger import Pin, covers
from cachewarden.mountinfo import (
    ForeignMounts,
    Mount,
    busy_below,
    is_network_or_unknown,
    own_mounts,
    relative,
    resolve,
    unescape,
)
from cachewarden.spec import LocationSpec
from cachewarden_policies import situation
from cachewarden_policies.reasons import KeepReason

# Filesystems on which a write lease is refused while anybody has the file open or mapped. An overlay
# grants one while the lower file is open elsewhere, so it is not among them.
_LEASE_TRUSTED = frozenset({b"ext2", b"ext3", b"ext4", b"xfs", b"btrfs", b"tmpfs", b"f2fs"})


@dataclass(frozen=True, slots=True)
class Guards:
    """What guards a pass, gathered once: pins in force, and the mounts of all namespaces.

    `pins` is None when the pins could not be read: then everything counts as pinned. `sure_ns` is the
    earliest time that it may be now: nothing ends by a clock that jumped.
    """

    pins: tuple[Pin, ...] | None
    mounts: ForeignMounts
    sure_ns: int

    def busy_below(self, root_fd: int) -> frozenset[bytes]:
        """Relative paths in a location that some namespace has mounted, or mounted upon."""
        return busy_below(root_fd, self.mounts)

    def pin_of(self, spec: LocationSpec, entry: Entry) -> Pin | None:
        """The pin in force that covers an entry, by one of its paths or by a name that is no path.

        People pin what `list` shows, and that is `REPO@COMMIT` where a repository has several revisions.
        """
        names = (entry.name, *entry.claim.paths, *([entry.claim.formerly] if entry.claim.formerly else ()))
        for pin in self.pins or ():
            if any(covers(pin, os.path.join(spec.path, name)) for name in names):
                return pin
        return None


def veto_of(
    spec: LocationSpec,
    entry: Entry,
    facts: situation.Entry,
    guards: Guards,
    *,
    busy: frozenset[bytes],
    shared: bool,
) -> KeepReason | None:
    """The first hard guard that holds an entry, or None. `shared`: what `is_shared` says of the location."""
    if entry.claim.keep is not None:
        return entry.claim.keep
    if entry.measure.obstacle is not None:
        return entry.measure.obstacle
    if busy and any(_meets(path, place) for path in entry.claim.paths for place in busy):
        return KeepReason.MOUNTPOINT
    if guards.pins is None or guards.pin_of(spec, entry) is not None:
        return KeepReason.PINNED
    if shared and not _idle_enough(spec, facts, guards.sure_ns):
        return KeepReason.OTHER_NODE
    return None


def _meets(path: bytes, place: bytes) -> bool:
    # Mounted in it, or it lies under something that is mounted elsewhere.
    return path == place or place.startswith(path + b"/") or path.startswith(place + b"/")


def is_shared(spec: LocationSpec, mount: Mount) -> bool:
    """Whether other machines may use the location: as configured, else by its filesystem's type."""
    if spec.shared == "auto":
        return is_network_or_unknown(mount.fstype) or is_exported(mount, spec.path)
    return spec.shared == "yes"


# What the kernel knows of (nfsd(7)): only what a client asked for, and for half an hour. What exportfs(8)
# was told lasts as long as the export, but says nothing where no server runs.
_EXPORTS = (b"/proc/fs/nfsd/exports", b"/var/lib/nfs/etab")


def is_exported(mount: Mount, path: bytes, tables: tuple[bytes, bytes] = _EXPORTS) -> bool:
    """Whether this machine's NFS server exports the location, or anything on its mount.

    Opens over NFSv3 are invisible to leases. `tables` are the kernel's table of exports, without which there
    is no server, and that of exportfs.
    """
    try:
        with open(tables[0], "rb") as exports:
            exported = exported_paths(exports.read())
    except FileNotFoundError:
        return False
    except OSError:
        return True  # there is a server, and what it exports is not known
    with suppress(OSError), open(tables[1], "rb") as exports:
        exported += exported_paths(exports.read())
    # Of the mount at `/` everything is a part that is no mount of its own: there the path alone counts.
    parts = (path,) if mount.point == b"/" else (path, mount.point)
    return any(_overlap(part, each) for part in parts for each in exported) or _by_another_path(
        path, exported
    )


def _by_another_path(path: bytes, exported: list[bytes]) -> bool:
    """Whether an export shows the same part of a filesystem through a mount of its own, as NFSv4 roots do."""
    try:
        table = own_mounts()
    except OSError:
        return bool(exported)
    mine = list(resolve(table, path))
    theirs = [place for each in exported for place in resolve(table, each)]
    return any(here[0] == there[0] and _overlap(here[1], there[1]) for here in mine for there in theirs)


def _overlap(one: bytes, other: bytes) -> bool:
    """Whether one of two absolute paths is the other or lies in it."""
    return relative(one, other) is not None or relative(other, one) is not None


def exported_paths(text: bytes) -> list[bytes]:
    """The paths of a table of exports: the first field of each line, blanks and the like in octal."""
    fields = (line.split(maxsplit=1)[0] for line in text.splitlines() if line.strip())
    return [unescape(field) for field in fields if not field.startswith(b"#")]


def lease_trusted(mount: Mount) -> bool:
    """Whether a granted write lease proves that nobody has the file open, on this filesystem."""
    return mount.fstype in _LEASE_TRUSTED


def _idle_enough(spec: LocationSpec, facts: situation.Entry, now_ns: int) -> bool:
    if spec.shared_without_agents != "idle":
        return False
    return now_ns - max(facts.last_use_ns, facts.changed_ns) >= spec.shared_idle


def inuse_complete(spec: LocationSpec, mount: Mount, guards: Guards) -> bool:
    """Whether "nobody uses it now" can be known in a location: leases prove it, all mount namespaces
    could be looked at, and no other machine may use it.
    """
    return lease_trusted(mount) and guards.mounts.complete and not is_shared(spec, mount)


def stronger(known: KeepReason | None, found: KeepReason) -> KeepReason:
    """Of two hard guards on an entry, the one to show: the first that was found, except that a use at
    this moment says more than that an opener lives.
    """
    if known is None or (known is KeepReason.LIVE_OPENER and found is KeepReason.IN_USE):
        return found
    return known
