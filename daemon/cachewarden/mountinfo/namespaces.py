"""What any process, in whatever container, has mounted where: by filesystem and path within it.

A container's paths mean nothing outside it, and a bind mount may hide behind another path and even
another device number. What stays the same is the *place*: the filesystem's major:minor and the
path within that filesystem, which mountinfo tells for every mount.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from cachewarden.mountinfo.table import Mount, mount_of, own_mounts, parse, relative

Place = tuple[bytes, bytes]  # major:minor, absolute path within the filesystem

_VANISHED = frozenset({errno.ENOENT, errno.ESRCH, errno.EINVAL})  # EINVAL: mountinfo of a dying process


@dataclass(frozen=True, slots=True)
class ForeignMounts:
    """The mount tables of all other mount namespaces, one each (one for each root seen in it).

    `unreadable` are processes whose namespace could not be looked at: with any of them, "mounted
    nowhere" is not known. Namespaces that no process is in (kept by a descriptor or a bind mount)
    cannot be seen; nothing runs in them.
    """

    tables: tuple[tuple[Mount, ...], ...]
    unreadable: tuple[int, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every process's namespace could be looked at."""
        return not self.unreadable


def foreign_mounts() -> ForeignMounts:
    """Read the mount table of each other mount namespace once, by way of its first process."""
    texts: set[bytes] = set()
    unreadable: set[int] = set()
    seen = {_view(b"/proc/self")}
    for pid, task in _tasks():
        view = _view(task)
        if view is not None and view in seen:
            continue
        try:
            with open(task + b"/mountinfo", "rb") as text:
                texts.add(text.read())
        except OSError as error:
            if error.errno not in _VANISHED:
                unreadable.add(pid)
        else:
            seen.add(view)
    return ForeignMounts(tuple(parse(text) for text in sorted(texts)), tuple(sorted(unreadable)))


def _view(task: bytes) -> tuple[int, int, int, int] | None:
    """Which namespace a task is in, and the root it sees of it: mountinfo shows what lies beneath that root.

    None where we may not know (that takes the right to trace the process, while mountinfo itself is
    open to all); then equal texts are read, and kept once.
    """
    try:
        namespace, root = os.stat(task + b"/ns/mnt"), os.stat(task + b"/root")
    except OSError:
        return None
    return namespace.st_dev, namespace.st_ino, root.st_dev, root.st_ino


def _tasks() -> Iterator[tuple[int, bytes]]:
    # A thread may leave its process's namespace: unshare(CLONE_NEWNS) after unshare(CLONE_FS).
    for name in os.listdir(b"/proc"):
        if not name.isdigit():
            continue
        with suppress(OSError):
            for task in os.listdir(b"/proc/" + name + b"/task"):
                yield int(name), b"/proc/" + name + b"/task/" + task


def places(table: Sequence[Mount]) -> set[Place]:
    """What one namespace's mounts keep busy: what is mounted, what it is mounted on, overlays' layers."""
    by_id = {mount.id: mount for mount in table}
    found: set[Place] = set()
    for mount in table:
        found.add((mount.major_minor, mount.root))
        below = by_id.get(mount.parent)
        if below is not None and below is not mount:
            found.update(_within(below, mount.point))
        for layer in mount.layers:
            found.update(resolve(table, layer))
    return found


def _within(mount: Mount, path: bytes) -> Iterator[Place]:
    rest = relative(path, mount.point)
    if rest is not None:
        yield mount.major_minor, os.path.join(mount.root, rest) if rest else mount.root


def resolve(table: Sequence[Mount], path: bytes) -> Iterator[Place]:
    """The place of an absolute path without links, by a mount table alone: nothing is looked at."""
    # The longest mount point above a path carries it; among equals the last one lies on top. A
    # relative layer (its mounter's directory is long forgotten) matches none.
    best: Mount | None = None
    for mount in table:
        if relative(path, mount.point) is not None and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return _within(best, path) if best is not None else iter(())


def place_of(fd: int) -> Place:
    """The place of an open directory. Raises OSError, LookupError as `mount_of` does.

    LookupError also for a directory that was removed, or lies outside our root.
    """
    mount = mount_of(fd)
    path = os.readlink(b"/proc/self/fd/%d" % fd)
    if os.fstat(fd).st_nlink == 0:  # the link then reads "… (deleted)", which could be a name too
        raise LookupError(f"{path!r} was removed")
    for place in _within(mount, path):
        return place
    raise LookupError(f"{path!r} does not lie on {mount.point!r}")


def busy_below(fd: int, foreign: ForeignMounts) -> frozenset[bytes]:
    """Paths beneath an open directory that some namespace, ours too, has mounted or mounted upon.

    Relative to the directory, and strictly beneath it: that the whole directory (or all of its
    filesystem) is mounted somewhere keeps nothing in it busy. Raises as `place_of` does.
    """
    device, base = place_of(fd)
    busy: set[bytes] = set()
    for table in _all_tables(foreign):
        for major_minor, path in places(table):
            rest = relative(path, base) if major_minor == device else None
            if rest:
                busy.add(rest)
    return frozenset(busy)


def _all_tables(foreign: ForeignMounts) -> Iterable[Sequence[Mount]]:
    yield own_mounts()
    yield from foreign.tables
