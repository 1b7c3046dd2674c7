"""Tallies of regions: renumbered for another split, and put together from what is old and what is new."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeVar

from cachewarden.inventory import Split
from cachewarden.scan.directories import Directories
from cachewarden.scan.regions import Regions
from cachewarden.scan.remembered.value import Remembered
from cachewarden.scan.tally import Linked, Tally

T = TypeVar("T")


def divided(known: Remembered, split: Split) -> tuple[Remembered, set[int]]:
    """What is remembered, by the regions of another split; and those that now begin or end elsewhere.

    The same split stays the same object, and so does everything else.
    """
    if split == known.split:
        return known, set()
    facts = known.facts
    regions = Regions(split, facts.trash, facts.mounts)
    place = {region.path: number for number, region in enumerate(regions.numbered) if number}
    moved = {0: 0}
    changed: set[int] = set()
    for number, region in enumerate(known.regions.numbered):
        if number and region.path in place:
            moved[number] = place.pop(region.path)
        elif number:  # it is no region any more: what lies there belongs to the one around it
            moved[number] = regions.covering(region.path)
            changed.add(moved[number])
    for number in place.values():  # these are new, and take something from the ones around them
        parent = regions.numbered[number].parent
        changed |= {number} if parent is None else {number, parent}
    tally = _renumbered(known.tally, moved)
    restless = {moved[number] for number in known.restless}
    return replace(known, split=split, regions=regions, tally=tally, restless=restless), changed


def _renumbered(tally: Tally, moved: Mapping[int, int]) -> Tally:
    """A tally by other numbers. Regions that fell together have no sums of their own: they are measured."""
    assert tally.directories is not None
    directories = Directories(tally.directories.settled_ns)
    directories.packed = {moved[number]: packed for number, packed in tally.directories.packed.items()}
    directories.deep = {moved[number] for number in tally.directories.deep}
    return Tally(
        sums={moved[number]: sums for number, sums in tally.sums.items()},
        linked={inode: _moved(linked, moved) for inode, linked in tally.linked.items()},
        roots={moved[number]: root for number, root in tally.roots.items()},
        unreadable=[(path, error, moved[number]) for path, error, number in tally.unreadable],
        mounts=[(path, moved[number]) for path, number in tally.mounts],
        excluded={moved[number] for number in tally.excluded},
        directories=directories,
    )


def _moved(linked: Linked, moved: Mapping[int, int]) -> Linked:
    return replace(linked, regions=tuple(sorted({moved[number] for number in linked.regions})))


def linked_with(tally: Tally, chosen: AbstractSet[int]) -> set[int]:
    """Some regions, and all that share an inode with them, or with one of those.

    How many links an inode has shows under each of its names, and changes under all of them at once.
    """
    found = set(chosen)
    shared = {linked.regions for linked in tally.linked.values() if len(linked.regions) > 1}
    more = bool(shared)
    while more:
        more = False
        for regions in shared:
            if not found.issuperset(regions) and not found.isdisjoint(regions):
                found.update(regions)
                more = True
    return found


def merged(tally: Tally, part: Tally, chosen: AbstractSet[int]) -> Tally:
    """A tally in which `part` has taken the place of what was known of the `chosen` regions.

    None of those shares an inode with one that was not chosen, see `linked_with`.
    """
    assert tally.directories is not None
    assert part.directories is not None
    directories = Directories(part.directories.settled_ns)
    directories.packed = _without(tally.directories.packed, chosen) | part.directories.packed
    directories.deep = (tally.directories.deep - chosen) | part.directories.deep
    return Tally(
        sums=_without(tally.sums, chosen) | part.sums,
        linked={inode: linked for inode, linked in tally.linked.items() if chosen.isdisjoint(linked.regions)}
        | part.linked,
        roots=_without(tally.roots, chosen) | part.roots,
        unreadable=[each for each in tally.unreadable if each[2] not in chosen] + part.unreadable,
        mounts=[each for each in tally.mounts if each[1] not in chosen] + part.mounts,
        excluded=(tally.excluded - chosen) | part.excluded,
        directories=directories,
    )


def _without(known: Mapping[int, T], chosen: AbstractSet[int]) -> dict[int, T]:
    found = dict(known)
    for number in chosen:
        found.pop(number, None)
    return found
