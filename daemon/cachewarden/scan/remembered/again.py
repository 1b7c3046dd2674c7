"""Walking again those regions of a location that may have changed, and putting the parts together.

What comes out is what a walk over everything would find: where that cannot be promised, the answer is None,
and whoever asked walks.
"""

import os
import stat
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from cachewarden.inventory import Split
from cachewarden.kernel.openat2 import open_path_on_mount
from cachewarden.scan.directories import Directories
from cachewarden.scan.regions import Node, Regions
from cachewarden.scan.remembered.changed import Changed
from cachewarden.scan.remembered.merging import divided, linked_with, merged
from cachewarden.scan.remembered.renewing import renewed
from cachewarden.scan.remembered.value import Facts, Remembered, differing, holes
from cachewarden.scan.tally import Tally
from cachewarden.scan.walk import Task, Walk
from cachewarden.tree import ABSENT, split_path

Progress = Callable[[int, int], None]

_SLICE = 500  # files between two reports of progress
# With more than half of so many files to be walked again, several processes are faster.
_MANY = 20_000


@dataclass(frozen=True, slots=True)
class Again:
    """What is asked: the split of now, what changed, which entries (by name) are to be measured in any
    case, and `settled_ns` as for `Directories`.
    """

    split: Split
    changed: Changed
    settled_ns: int
    entries: AbstractSet[bytes] = frozenset()


class _UnsureError(Exception):
    """Something was met that only a walk over everything can judge."""


def measure_again(
    known: Remembered, root_fd: int, facts: Facts, again: Again, progress: Progress | None = None
) -> Remembered | None:
    """Measure what may have changed since `known` was measured; None: all of it has to be.

    What `progress` raises ends it.
    """
    if facts != known.facts:
        return None
    before = known.split
    known, chosen = divided(known, again.split)
    chosen |= again.changed.regions(known.regions) | known.regions_of(again.entries)
    chosen |= known.restless | holes(known.tally)
    chosen = linked_with(known.tally, chosen)
    if _too_many(known.tally, chosen):
        return None
    part = Tally(directories=Directories(again.settled_ns))
    try:
        _walk(root_fd, part, known.regions, chosen, facts, progress)
    except _UnsureError:
        return None
    if any(each.links > each.seen and inode not in known.tally.linked for inode, each in part.linked.items()):
        return None  # its other names are outside, or were the only ones when their regions were measured
    tally = merged(known.tally, part, chosen) if chosen else known.tally
    return replace(
        known,
        tally=tally,
        inventory=renewed(known, tally, chosen, same_split=known.split is before),
        restless=differing(known.tally, tally, chosen),
    )


def _too_many(tally: Tally, chosen: AbstractSet[int]) -> bool:
    total = sum(sums.files for sums in tally.sums.values())
    mine = sum(sums.files for number, sums in tally.sums.items() if number in chosen)
    return total > _MANY and mine > total // 2


def _walk(
    root_fd: int,
    part: Tally,
    regions: Regions,
    chosen: AbstractSet[int],
    facts: Facts,
    progress: Progress | None,
) -> None:
    with Walk(root_fd, part, facts.exclude, only=chosen) as walk:
        for number in sorted(chosen):
            region = regions.numbered[number]
            if region.parent is not None and region.parent in chosen:
                continue  # it is met on the way through that one
            if facts.exclude is not None and region.path and facts.exclude.matches(region.path):
                continue
            _begin(walk, root_fd, regions, number)
            while not walk.idle:
                walk.run(_SLICE)
                if progress is not None:
                    progress(part.found_files, part.found_bytes)


def _begin(walk: Walk, root_fd: int, regions: Regions, number: int) -> None:
    """Begin with one region, as a walk would that comes to it from above."""
    path = regions.numbered[number].path
    if not path:
        if regions.tree.region not in (None, number):
            return  # the rest, of which a claim on the whole location leaves nothing
        try:
            walk.start_at_root(regions.tree)
        except OSError as error:
            raise _UnsureError from error
        return
    node = regions.node(path)
    assert node is not None
    parent, name = split_path(path)
    try:
        fd = open_path_on_mount(root_fd, parent)
    except OSError as error:
        if error.errno in ABSENT:
            return
        raise _UnsureError from error  # what could be opened cannot any more: somebody changed a mode
    try:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _UnsureError from error
    finally:
        os.close(fd)
    if stat.S_ISDIR(found.st_mode) and not node.mounted:
        step = (os.fsdecode(name), number, True, node if node.children else None)
        walk.start(Task(parent, [step]))
        return
    _take(walk.tally, number, node, path, found)


def _take(tally: Tally, number: int, node: Node, path: bytes, found: os.stat_result) -> None:
    tally.at_root(number, found)
    if node.mounted:
        tally.mounts.append((path, number))
    else:
        tally.add(number, found)
