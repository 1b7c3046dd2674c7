"""One walk over a whole location, by as many processes as it is worth."""

import errno
import os
from collections.abc import Callable, Collection

from cachewarden.errors import LocationUnavailableError
from cachewarden.inventory import Inventory, Split
from cachewarden.kernel.statx import mount_id
from cachewarden.mountinfo import own_mounts, relative
from cachewarden.scan.attribution import attribute
from cachewarden.scan.crew import Crew
from cachewarden.scan.directories import Directories
from cachewarden.scan.regions import ROOT, Regions
from cachewarden.scan.remembered.merging import divided
from cachewarden.scan.remembered.value import Facts, Remembered, differing
from cachewarden.scan.tally import Tally
from cachewarden.scan.walk import Walk
from cachewarden_policies.globs import Globs

Progress = Callable[[int, int], None]

_SLICE = 500  # files between two looks at the helpers
_ALONE = 20_000  # files after which helpers are worth their start, some 50 ms of CPU each
_MOST = 8  # processes for one walk: beyond that, a disk's queue is full


def scan(
    root_fd: int,
    split: Split,
    *,
    trash_names: Collection[bytes] = (),
    exclude: Globs | None = None,
    progress: Progress | None = None,
    processes: int | None = None,
) -> Inventory:
    """Measure everything in the location behind `root_fd`, which stays the caller's.

    `trash_names` are relative paths whose contents count as trash. What `exclude` matches is neither
    counted nor looked into; a claim that contains such a thing cannot go whole, so its obstacle is
    PROTECTED. `progress` is told the files and bytes found so far, several times a second; what it
    raises ends the walk, which is how a pass is cancelled. `processes` is how many may walk at once,
    by default the processors we may run on.

    Claims of which nothing is left are not in the inventory. Things that vanish during the walk do
    not count. Raises LocationUnavailableError when the root itself is gone or does not answer.
    """
    facts = facts_of(root_fd, trash_names, exclude)
    regions, tally = _walked(root_fd, split, facts, Tally(), progress, processes)
    return attribute(split, regions, tally, _root(root_fd))


def remember(
    root_fd: int,
    split: Split,
    facts: Facts,
    settled_ns: int,
    progress: Progress | None = None,
    before: Remembered | None = None,
) -> Remembered:
    """The same as `scan`, to be gone on with by `measure_again`. `settled_ns` as for `Directories`.

    `before` is what was remembered so far: what is as it was then is not restless.
    """
    tally = Tally(directories=Directories(settled_ns))
    regions, tally = _walked(root_fd, split, facts, tally, progress)
    inventory = attribute(split, regions, tally, _root(root_fd))
    restless = set(range(len(regions.numbered)))
    if before is not None and before.facts == facts:
        known, moved = divided(before, split)
        restless = moved | differing(known.tally, tally, restless)
    return Remembered(facts, split, regions, tally, inventory, restless)


def facts_of(root_fd: int, trash_names: Collection[bytes], exclude: Globs | None) -> Facts:
    """What a measure depends on beside the tree, at this moment. Raises LocationUnavailableError."""
    return Facts(tuple(trash_names), exclude, tuple(_mounts_below(root_fd)), _root(root_fd))


def _walked(
    root_fd: int,
    split: Split,
    facts: Facts,
    tally: Tally,
    progress: Progress | None,
    processes: int | None = None,
) -> tuple[Regions, Tally]:
    regions = Regions(split, facts.trash, facts.mounts)
    size = processes or min(len(os.sched_getaffinity(0)), _MOST)
    settled_ns = None if tally.directories is None else tally.directories.settled_ns
    with Walk(root_fd, tally, facts.exclude) as walk:
        _start(walk, tally, regions)
        _walk_alone(walk, tally, progress, _ALONE if size > 1 else None)
        if not walk.idle:
            with Crew(root_fd, size - 1, facts.exclude, settled_ns) as crew:
                _walk_together(walk, crew, tally, progress)
    return regions, tally


def _start(walk: Walk, tally: Tally, regions: Regions) -> None:
    try:
        walk.start_at_root(regions.tree)
    except PermissionError as error:
        tally.unreadable.append((b"", error.errno or 0, ROOT))
    except OSError as error:
        raise LocationUnavailableError(f"the location cannot be listed: {error.strerror}") from error


def _walk_alone(walk: Walk, tally: Tally, progress: Progress | None, until: int | None) -> None:
    while not walk.idle and (until is None or tally.found_files < until):
        walk.run(_SLICE)
        if progress is not None:
            progress(tally.found_files, tally.found_bytes)


def _walk_together(walk: Walk, crew: Crew, tally: Tally, progress: Progress | None) -> None:
    while not walk.idle or crew.busy or crew.backlog:
        crew.feed(walk.give)
        if walk.idle and crew.backlog:
            walk.start(crew.backlog.pop())
        walk.run(_SLICE)
        crew.collect(tally, wait=walk.idle and crew.busy and not crew.backlog)
        if progress is not None:
            progress(tally.found_files, tally.found_bytes)


def _root(root_fd: int) -> tuple[int, int]:
    try:
        found = os.fstat(root_fd)
    except OSError as error:
        raise LocationUnavailableError(f"the location does not answer: {error.strerror}") from error
    if found.st_nlink == 0:
        raise LocationUnavailableError(f"the location was removed: {os.strerror(errno.ENOENT)}")
    return found.st_dev, found.st_ino


def _mounts_below(root_fd: int) -> list[bytes]:
    """Relative paths at which something is mounted right on the location's own mount.

    The walk would notice directories by itself, but not single files with another file mounted on
    them, as containers do. Mounts on mounts do not matter, as none is entered.
    """
    base = os.readlink(b"/proc/self/fd/%d" % root_fd)
    ours = mount_id(root_fd)
    found = (relative(mount.point, base) for mount in own_mounts() if mount.parent == ours)
    return [path for path in found if path]
