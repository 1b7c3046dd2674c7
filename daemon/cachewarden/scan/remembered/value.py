"""What is remembered of a location between two passes."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from cachewarden.inventory import Inventory, Split
from cachewarden.scan.regions import Kind, Regions
from cachewarden.scan.tally import Tally
from cachewarden_policies.globs import Globs


@dataclass(frozen=True, slots=True)
class Facts:
    """What a measure depends on beside the tree: with other facts, nothing remembered can be used.

    `mounts` are relative paths at which something is mounted, `root` is (device, inode).
    """

    trash: tuple[bytes, ...]
    exclude: Globs | None
    mounts: tuple[bytes, ...]
    root: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Remembered:
    """One measure of a location, with the parts that it was put together from.

    `restless` are regions (by number) whose sums were not the same in two measures: somebody may be
    writing there still. `tally.directories` is never None.
    """

    facts: Facts
    split: Split
    regions: Regions
    tally: Tally
    inventory: Inventory
    restless: AbstractSet[int]

    def regions_of(self, names: Collection[bytes]) -> set[int]:
        """The regions that the entries of these names use, by number."""
        if not names:
            return set()
        claims = {index: claim for index, claim in enumerate(self.split.claims) if claim.name in names}
        shared = {path for claim in claims.values() for path in claim.shared}
        return {
            number
            for number, region in enumerate(self.regions.numbered)
            if (region.kind is Kind.CLAIM and region.index in claims)
            or (region.kind is Kind.SHARED and self.split.shared[region.index].path in shared)
        }


def holes(tally: Tally) -> set[int]:
    """Regions in which something could not be looked at: whether it can be now, nobody tells."""
    return {region for _, _, region in tally.unreadable}


def differing(before: Tally, after: Tally, regions: AbstractSet[int]) -> set[int]:
    """Those of some regions that were measured twice, with different results."""
    found = {region for region in regions if _values(before, region) != _values(after, region)}
    for inode in before.linked.keys() | after.linked.keys():
        one, other = before.linked.get(inode), after.linked.get(inode)
        if one != other:
            found.update(*(each.regions for each in (one, other) if each is not None))
    return found


def _values(tally: Tally, region: int) -> object:
    sums = tally.sums.get(region)
    return (sums.values() if sums is not None else None), tally.roots.get(region)
