"""From what the kernel names (a directory's handle, sometimes a name in it) to entries of locations.

One index serves all locations on a filesystem: handles are unique there, and locations do not overlap.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from cachewarden.openers.elsewhere import Where

Names = tuple[bytes, ...]  # of entries


_NO_NAMES: Mapping[bytes, Names] = {}


@dataclass(frozen=True, slots=True)
class Place:
    """A directory in the location `key`, or all those with the same owners. `entries`: whose it is.

    `names`: single files in it that are (parts of) entries; with any of them it is shared, and only events
    with names tell who was used.
    """

    key: str
    entries: Names = ()
    names: Mapping[bytes, Names] = field(default_factory=lambda: _NO_NAMES)

    def all_entries(self) -> set[bytes]:
        """Whatever may be meant by an open somewhere in it."""
        return {*self.entries, *(entry for names in self.names.values() for entry in names)}


def places(
    key: str, directories: Iterable[tuple[bytes, bytes]], files: Iterable[tuple[Where, bytes]]
) -> dict[bytes, Place]:
    """Places from (handle, entry) of directories and ((handle, name), entry) of single files."""
    owners: dict[bytes, Names] = {}
    for handle, entry in directories:
        owners[handle] = _with(owners.get(handle, ()), entry)
    named: dict[bytes, dict[bytes, Names]] = {}
    for (handle, name), entry in files:
        names = named.setdefault(handle, {})
        names[name] = _with(names.get(name, ()), entry)
    same: dict[Names, Place] = {}  # an entry of many directories needs one place
    found = {handle: same.setdefault(names, Place(key, names)) for handle, names in owners.items()}
    found |= {handle: Place(key, owners.get(handle, ()), names) for handle, names in named.items()}
    return found


def _with(names: Names, entry: bytes) -> Names:
    if not names:
        return (entry,)
    return names if entry in names else (*names, entry)


class Index:
    """All places on one filesystem."""

    def __init__(self) -> None:
        self._places: dict[bytes, Place] = {}
        self._found: dict[str, Mapping[bytes, Place]] = {}
        self.get = self._places.get

    def has(self, key: str, found: Mapping[bytes, Place]) -> bool:
        """Whether these very places are those of the location already."""
        return self._found.get(key) is found

    def replace(self, key: str, found: Mapping[bytes, Place]) -> dict[bytes, Place]:
        """A location was looked at again.

        Returns the places it had before, and those that another location had and this one has now.
        """
        before = self.remove(key)
        before |= {handle: self._places[handle] for handle in found if handle in self._places}
        self._places.update(found)
        self._found[key] = found
        return before

    def remove(self, key: str) -> dict[bytes, Place]:
        """A location is no more. Returns the places it had."""
        had: dict[bytes, Place] = {}
        for handle in self._found.pop(key, ()):
            place = self._places.get(handle)
            if place is not None and place.key == key:  # otherwise it was moved into another location
                had[handle] = self._places.pop(handle)
        return had


@dataclass(frozen=True, slots=True)
class Move:
    """What was `old` of the location `old_key` at the last look is (part of) `new` now."""

    old_key: str
    old: bytes
    new: bytes


def moves(before: Mapping[bytes, Place], found: Mapping[bytes, Place]) -> set[Move]:
    """Which entries took over directories or files of others."""
    crossed: set[Move] = set()
    for handle, place in found.items():
        old = before.get(handle)
        if old is None or old == place:
            continue
        pairs: list[tuple[Collection[bytes], Collection[bytes]]]
        if bool(old.names) is bool(place.names):
            pairs = [(old.entries, place.entries)]
            pairs += [(old.names[name], place.names[name]) for name in place.names.keys() & old.names.keys()]
        else:  # shared only now, or not any more: which of its files were opened is not known
            pairs = [(old.all_entries(), place.all_entries())]
        for former, entries in pairs:
            crossed |= {Move(old.key, one, other) for one in former for other in entries}
    here = next((place.key for place in found.values()), "")
    return {move for move in crossed if (move.old_key, move.old) != (here, move.new)}
