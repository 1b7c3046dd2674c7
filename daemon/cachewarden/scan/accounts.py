"""The books that attribution keeps: one account for each entry, and those for everything else."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from cachewarden.inventory import SharedData, Split
from cachewarden.scan.regions import Kind, Region, Regions
from cachewarden.scan.tally import Tally
from cachewarden.sums import Sums
from cachewarden_policies.reasons import KeepReason


@dataclass(slots=True)
class Amount:
    """Allocated bytes, regular files and inodes."""

    bytes: int = 0
    files: int = 0
    inodes: int = 0

    def add(self, size: int, files: int, inodes: int) -> None:
        """Add to all three."""
        self.bytes += size
        self.files += files
        self.inodes += inodes


@dataclass(slots=True)
class Account:
    """One entry: `claim` is an index into the split's claims, `root` (device, inode, owner).

    `attributed` is what counts as its own, `own` what the location gets back with it alone, `disk`
    what the disk gets back. `inner` are the sums of its regions, `read` of those whose reading is its
    use; `whole` of all regions beneath its paths, other claims' too; `listed` adds the inodes with several
    names there.
    """

    claim: int
    root: tuple[int, int, int]
    attributed: Amount = field(default_factory=Amount)
    own: Amount = field(default_factory=Amount)
    disk: Amount = field(default_factory=Amount)
    listed: Amount = field(default_factory=Amount)
    inner: list[Sums] = field(default_factory=list)
    read: list[Sums] = field(default_factory=list)
    whole: list[Sums] = field(default_factory=list)
    shares: list[int] = field(default_factory=list)
    obstacle: KeepReason | None = None

    def uses(self, sums: Sums, *, quiet: bool) -> None:
        """Take the times of one of its regions; `quiet`: that it is read says nothing."""
        self.inner.append(sums)
        if not quiet:
            self.read.append(sums)


class Accounts:
    """All accounts of a location.

    `entries` are those claims of which something was found, by name: an entry's position is its
    number everywhere. `foreign` is by index into the split's foreign (-1: what nobody mentioned),
    `shared` by index into its shared data, `groups` by (positions, whether a link leads outside).
    """

    def __init__(self, split: Split, regions: Regions, tally: Tally) -> None:
        self.entries = _open_accounts(split, regions, tally)
        self.foreign: defaultdict[int, Amount] = defaultdict(Amount)
        self.shared: defaultdict[int, Amount] = defaultdict(Amount)
        self.groups: defaultdict[tuple[tuple[int, ...], bool], Amount] = defaultdict(Amount)
        self.trash = Amount()
        self.total = Amount()
        self._split = split
        self._position = {account.claim: position for position, account in enumerate(self.entries)}
        self._users = self._find_users()

    def owners(self, region: Region) -> tuple[int, ...]:
        """Positions of the entries that a region's data belongs to; none for what is not an entry's."""
        if region.kind is Kind.CLAIM and region.index in self._position:
            return (self._position[region.index],)
        return self._users[region.index] if region.kind is Kind.SHARED else ()

    def is_kept(self, region: Region) -> bool:
        """Whether a region is shared data that stays when its last user goes."""
        return region.kind is Kind.SHARED and self._split.shared[region.index].kept

    def is_quiet(self, region: Region) -> bool:
        """Whether a region is read by whoever only lists what is there."""
        if region.kind is Kind.SHARED:
            return self._split.shared[region.index].quiet
        return region.kind is Kind.CLAIM and region.path in self._split.claims[region.index].quiet

    def around(self, regions: Regions, number: int) -> set[int]:
        """Positions of the entries that a region lies beneath a path of, its own included."""
        claims = (region.index for region in regions.around(number) if region.kind is Kind.CLAIM)
        return {self._position[index] for index in claims if index in self._position}

    def attribute(
        self, owners: Sequence[int], found: Sequence[Region], size: int, files: int, inodes: int
    ) -> None:
        """Let something count for its first owner by name, else as foreign, else as trash."""
        foreign = [region for region in found if region.kind is not Kind.TRASH]
        if owners:
            self.entries[owners[0]].attributed.add(size, files, inodes)
        elif foreign:
            index = foreign[0].index if foreign[0].kind is Kind.FOREIGN else -1
            self.foreign[index].add(size, files, inodes)
        else:
            self.trash.add(size, files, inodes)

    def goes(self, owner: int, size: int, files: int, inodes: int, *, outside: bool = False) -> None:
        """Book what goes with one entry alone."""
        self.entries[owner].own.add(size, files, inodes)
        if not outside:
            self.entries[owner].disk.add(size, files, inodes)

    def shares(self) -> tuple[SharedData, ...]:
        """All data that goes with the last of its owners; notes in each owner's account which it has."""
        found = [
            SharedData(self._users[index], amount.bytes, amount.files, claim=self._split.shared[index])
            for index, amount in sorted(self.shared.items())
        ]
        found += (
            SharedData(owners, amount.bytes, amount.files, outside=outside)
            for (owners, outside), amount in sorted(self.groups.items())
        )
        for index, share in enumerate(found):
            for owner in share.owners:
                self.entries[owner].shares.append(index)
        return tuple(found)

    def _find_users(self) -> list[tuple[int, ...]]:
        by_path: dict[bytes, list[int]] = defaultdict(list)
        for position, account in enumerate(self.entries):
            for path in set(self._split.claims[account.claim].shared):
                by_path[path].append(position)
        return [tuple(by_path.get(shared.path, ())) for shared in self._split.shared]


def _open_accounts(split: Split, regions: Regions, tally: Tally) -> list[Account]:
    roots: dict[int, tuple[int, int, int]] = {}
    for number, region in enumerate(regions.numbered):  # in the order of the claims' paths: the first counts
        if region.kind is Kind.CLAIM and number in tally.roots:
            roots.setdefault(region.index, tally.roots[number])
    by_name = sorted(roots, key=lambda index: split.claims[index].name)
    return [Account(index, roots[index]) for index in by_name]
