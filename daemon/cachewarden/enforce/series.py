"""Entries that one program made one after the other: whoever uses one of them has them all.

A trainer opens the checkpoint that it writes, and goes back to an older one when the newer are no good; one
that was started again has opened only the one that it went on from. While it lives, all of the series stay.
"""

from collections import defaultdict
from collections.abc import Collection
from collections.abc import Set as AbstractSet

from cachewarden.evict import LiveOpeners
from cachewarden.inventory import Inventory


class InSeries:
    """The live openers of one location, in which who holds one entry of a series holds all of it."""

    def __init__(self, openers: LiveOpeners, inventory: Inventory) -> None:
        self._openers = openers
        self._siblings: dict[bytes, tuple[bytes, ...]] = {}
        for names in series_in(inventory):
            self._siblings |= dict.fromkeys(names, names)

    def drain(self) -> None:
        """Take in all that is known up to now."""
        self._openers.drain()

    def holds(self, entry: bytes) -> bool:
        """Whether a living process opened this entry or one of its series, or whether that is unknown."""
        return any(map(self._openers.holds, self._siblings.get(entry, (entry,))))


def with_series(held: AbstractSet[bytes], inventory: Inventory) -> AbstractSet[bytes]:
    """The names of entries that are `held`, and those of all in the same series."""
    more = [names for names in series_in(inventory) if not held.isdisjoint(names)]
    return set(held).union(*more) if more else held


def series_in(inventory: Inventory) -> Collection[tuple[bytes, ...]]:
    """The names of the entries of each series that has several."""
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for entry in inventory.entries:
        if entry.claim.series is not None:
            found[entry.claim.series].append(entry.name)
    return [tuple(names) for names in found.values() if len(names) > 1]
