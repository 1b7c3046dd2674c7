"""What one location's filesystem is known for, and what can be seen of it without writing anything."""

from collections.abc import Iterator, Sequence

from cachewarden.doctor.finding import Finding, good, named, note, weaker
from cachewarden.enforce.guards import is_exported, lease_trusted
from cachewarden.evict.fallback import fallback_for
from cachewarden.kernel import statfs
from cachewarden.kernel.fanotify import Group, Kind
from cachewarden.mountinfo import Mount, atime_mode, is_network_or_unknown
from cachewarden.openers import Form
from cachewarden.openers.forms import establish
from cachewarden.units import format_size


def ground_findings(root_fd: int, mount: Mount, paths: Sequence[bytes]) -> Iterator[Finding]:
    """Type, sharing, opens, room and access times. `paths` are all locations on the mount."""
    yield _type(root_fd, mount)
    if any(is_exported(mount, path) for path in paths):
        yield weaker(
            "export",
            "exported by this machine's NFS server, whose clients' opens nothing here can see",
            "end the export; `coordinator` says what goes meanwhile",
        )
    yield _opens(root_fd, mount)
    yield from _room(root_fd)
    yield _atime(mount)


def _type(root_fd: int, mount: Mount) -> Finding:
    name = mount.fstype.decode("ascii", "replace")
    if is_network_or_unknown(mount.fstype):
        return weaker(
            "filesystem",
            f"{name}: other machines, or a program that serves it, may use files unseen: it is measured and "
            "reported, nothing goes",
            "keep caches on a local disk, or let each node clean its own",
        )
    if lease_trusted(mount):
        return good("filesystem", f"{name}: leases are known to tell all")
    if fallback_for(root_fd) is None:
        return weaker("filesystem", f"{name}: leases are not known to tell all: nothing goes", "run as root")
    layer = " and only what lies in the upper layer alone goes" if mount.fstype == b"overlay" else ""
    return weaker(
        "filesystem",
        f"{name}: leases do not tell all; a look at every process has to agree{layer}",
        "keep caches on ext4, xfs, btrfs or tmpfs; in containers, on a volume",
    )


def _opens(root_fd: int, mount: Mount) -> Finding:
    try:
        with Group(Kind()) as group:
            form = establish(group, root_fd, mount)
    except OSError as error:
        return weaker("opens", f"no mark: {named(error.errno)}; {Form.SAMPLES.sentence}", "run as root")
    if form is Form.FILESYSTEM:
        return good("opens", form.sentence)
    if form is Form.DIRECTORIES:
        advice = "mount the top of the btrfs filesystem somewhere" if mount.fstype == b"btrfs" else ""
        return weaker("opens", form.sentence, advice)
    return weaker("opens", Form.SAMPLES.sentence, "min_idle, or a lock on the entry, protects the rest")


def _room(root_fd: int) -> Iterator[Finding]:
    try:
        space = statfs.usage(root_fd)
    except OSError as error:
        yield weaker("room", f"how much is free cannot be found out: {named(error.errno)}")
        return
    if space.readonly:
        yield weaker("writable", "mounted read-only: nothing can go", "mount it read-write")
    free = f"{format_size(space.avail_bytes)} of {format_size(space.size_bytes)} free"
    if space.counts_inodes:
        yield good("room", f"{free}, {space.avail_inodes:,} of {space.size_inodes:,} inodes")
    else:
        yield note("room", f"{free}; inodes are made as needed, so that no floor on inodes can be judged")


def _atime(mount: Mount) -> Finding:
    mode = atime_mode(mount)
    if mode == "noatime":
        return weaker(
            "last use",
            "access times are not kept: last use is the last open that was seen, else the last write",
            "run the service, which sees opens; mount with relatime; or set `learn` and `min_idle`",
        )
    if mode == "relatime":
        return good("last use", "access times are right to the day (relatime); opens that are seen, exactly")
    return good("last use", "access times are exact")
