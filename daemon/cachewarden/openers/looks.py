"""One look at a location: which directories and files its entries consist of, and to whom each belongs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from cachewarden.inventory import Entry, Inventory
from cachewarden.mountinfo import Mount
from cachewarden.openers.elsewhere import Where
from cachewarden.openers.grounds import Ground, Marker, Stamp, Surveyor, settled, stamp_of
from cachewarden.openers.index import Place, places

# Filesystems on which a directory's link count is 2 and one for each subdirectory, until it is 1 for "too
# many": ext4 (dir_nlink), XFS, tmpfs. btrfs always says 1; others invent what they say.
_COUNTS_LINKS = frozenset({b"ext2", b"ext3", b"ext4", b"xfs", b"tmpfs"})


Owned = list[tuple[Ground, tuple[bytes, ...]]]  # with the names of entries


@dataclass(frozen=True, slots=True)
class Look:
    """What a location consisted of. `unknown` are entries of which a part could not be looked at.

    `measured` are the entries that were looked at, `settled`: that nothing but another measure of them can
    make another look necessary.
    """

    entries: frozenset[bytes] = frozenset()
    unknown: frozenset[bytes] = frozenset()
    places: Mapping[bytes, Place] = field(default_factory=dict)
    grounds: Mapping[bytes, tuple[Stamp, Ground, bool]] = field(default_factory=dict)
    shared: Owned = field(default_factory=list)
    measured: tuple[Entry, ...] = ()
    settled: bool = False

    def sure(self) -> set[int]:
        """Which entries, as objects, need not be looked at again while they are what was measured."""
        return {
            id(entry)
            for entry in self.measured
            if (known := self.grounds.get(entry.name)) is not None and known[2] and not known[1].files
        }


@dataclass(frozen=True, slots=True)
class Site:
    """The location that is looked at: its key, open root and mount; `now_ns` is the wall clock."""

    key: str
    root_fd: int
    mount: Mount
    now_ns: int


def look(site: Site, inventory: Inventory, marker: Marker, last: Look) -> Look:
    """Look at every entry that changed since the `last` look. Raises OSError where a mark was refused."""
    if last.settled and last.measured is inventory.entries:
        return last
    shares = [share for share in inventory.shares if share.claim is not None]
    apart = {path for entry in inventory.entries for path in entry.claim.paths}
    apart |= {share.claim.path for share in shares if share.claim is not None}
    surveyor = Surveyor(site.root_fd, marker, apart, counts_links=site.mount.fstype in _COUNTS_LINKS)
    grounds: dict[bytes, tuple[Stamp, Ground, bool]] = {}
    shared: Owned = []
    sure = last.sure()
    try:
        for entry in inventory.entries:
            if id(entry) in sure:  # `last` holds it, so that no other object has its id
                grounds[entry.name] = last.grounds[entry.name]
                continue
            stamp = stamp_of(entry)
            known = last.grounds.get(entry.name)
            usable = known is not None and known[0] == stamp and known[2]
            if known is None or not usable or not surveyor.still(entry.claim.paths, known[1]):
                ground = surveyor.of(path for path in entry.claim.paths if path not in entry.claim.quiet)
                known = (stamp, ground, ground.complete and settled(entry, site.now_ns))
            grounds[entry.name] = known
        for share in shares:
            if share.claim is not None and not share.claim.quiet:
                owners = tuple(inventory.entries[owner].name for owner in share.owners)
                shared.append((surveyor.of((share.claim.path, *share.claim.companions)), owners))
    finally:
        surveyor.close()
    finished = not shared and all(usable and not ground.files for _, ground, usable in grounds.values())
    if grounds == last.grounds and shared == last.shared:
        # The same places, as an object: who has them already has nothing to do.
        return replace(last, grounds=grounds, measured=inventory.entries, settled=finished)
    owned = [(ground, (name,)) for name, (_, ground, _) in grounds.items()] + shared
    return Look(
        entries=frozenset(grounds),
        unknown=frozenset(name for ground, names in owned if not ground.complete for name in names),
        places=places(site.key, _directories(owned), _files(owned)),
        grounds=grounds,
        shared=shared,
        measured=inventory.entries,
        settled=finished,
    )


def _directories(owned: Owned) -> Iterator[tuple[bytes, bytes]]:
    return ((handle, name) for ground, names in owned for handle in ground.directories for name in names)


def _files(owned: Owned) -> Iterator[tuple[Where, bytes]]:
    return ((where, name) for ground, names in owned for where in ground.files for name in names)
