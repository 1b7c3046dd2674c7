"""From a tally to an inventory: whose is what, and what goes when an entry goes.

Every byte is attributed to one entry, to foreign things or to the trash, so that these add up to the
location's usage. What *goes* with an entry alone is less: not what another entry, something foreign
or the trash has a name of too, and for the disk not what a link outside the location keeps.
"""

from cachewarden.inventory import Entry, Inventory, Measure, Split
from cachewarden.scan.accounts import Account, Accounts
from cachewarden.scan.obstacles import find_obstacles
from cachewarden.scan.regions import Kind, Region, Regions
from cachewarden.scan.tally import Linked, Tally


def attribute(split: Split, regions: Regions, tally: Tally, root: tuple[int, int]) -> Inventory:
    """The inventory of a location whose root is (device, inode) `root`."""
    accounts = Accounts(split, regions, tally)
    _book_regions(accounts, regions, tally)
    for linked in tally.linked.values():
        _book_linked(accounts, regions, linked)
    shares = accounts.shares()
    keeps = {index: claim.keep for index, claim in enumerate(split.claims) if claim.keep is not None}
    find_obstacles(accounts, regions, tally, keeps)
    return Inventory(
        dev=root[0],
        ino=root[1],
        layout=split.layout,
        entries=tuple(entry_of(split, account) for account in accounts.entries),
        shares=shares,
        foreign=tuple(
            (foreign, accounts.foreign[index].bytes) for index, foreign in enumerate(split.foreign)
        ),
        unreadable=tuple(sorted((path, number) for path, number, _ in tally.unreadable)),
        mounts=tuple(sorted(path for path, _ in tally.mounts)),
        warnings=split.warnings,
        foreign_bytes=sum(each.bytes for each in accounts.foreign.values()),
        trash_bytes=accounts.trash.bytes,
        files=accounts.total.files,
        bytes=accounts.total.bytes,
    )


def _book_regions(accounts: Accounts, regions: Regions, tally: Tally) -> None:
    """Book what has one name only, and is therefore in one region only."""
    for number, sums in tally.sums.items():
        region = regions.numbered[number]
        accounts.total.add(sums.bytes, sums.files, sums.inodes)
        owners = accounts.owners(region)
        accounts.attribute(owners, [region], sums.bytes, sums.files, sums.inodes)
        if region.kind is Kind.SHARED and owners:
            accounts.shared[region.index].add(sums.bytes, sums.files, sums.inodes)
        elif owners:
            accounts.goes(owners[0], sums.bytes, sums.files, sums.inodes)
        for position in owners:
            accounts.entries[position].uses(sums, quiet=accounts.is_quiet(region))
        for position in accounts.around(regions, number):
            accounts.entries[position].whole.append(sums)


def _book_linked(accounts: Accounts, regions: Regions, linked: Linked) -> None:
    """Book an inode with several names."""
    found = [regions.numbered[number] for number in linked.regions]
    parties = [accounts.owners(region) for region in found]
    owners = tuple(sorted({owner for each in parties for owner in each}))
    outside = linked.links > linked.seen
    accounts.total.add(linked.bytes, linked.files, 1)
    accounts.attribute(owners, found, linked.bytes, linked.files, 1)
    for position in {each for number in linked.regions for each in accounts.around(regions, number)}:
        accounts.entries[position].listed.add(linked.bytes, linked.files, 1)
    if not all(parties) or any(accounts.is_kept(region) for region in found):
        return  # something that stays has a name of it too
    if _is_one_shared(found) and not outside:
        accounts.shared[found[0].index].add(linked.bytes, linked.files, 1)
    elif len(owners) > 1 or any(region.kind is Kind.SHARED for region in found):
        accounts.groups[owners, outside].add(linked.bytes, linked.files, 1)
    else:
        accounts.goes(owners[0], linked.bytes, linked.files, 1, outside=outside)


def _is_one_shared(found: list[Region]) -> bool:
    return {(region.kind, region.index) for region in found} == {(Kind.SHARED, found[0].index)}


def entry_of(split: Split, account: Account) -> Entry:
    """The entry that an account makes."""
    dev, ino, owner = account.root
    measure = Measure(
        bytes=account.attributed.bytes,
        files=account.attributed.files,
        inodes=account.attributed.inodes,
        newest_ns=max((sums.newest_ns for sums in account.whole), default=0),
        mtime_ns=max((sums.mtime_ns for sums in account.inner), default=0),
        ctime_ns=max((sums.ctime_ns for sums in account.inner), default=0),
        atime_ns=max((sums.atime_ns for sums in account.read), default=0),
        obstacle=account.obstacle,
    )
    return Entry(
        claim=split.claims[account.claim],
        dev=dev,
        ino=ino,
        owner=owner,
        measure=measure,
        own_bytes=account.own.bytes,
        own_files=account.own.files,
        disk_bytes=account.disk.bytes,
        disk_inodes=account.disk.inodes,
        listed_bytes=account.listed.bytes + sum(sums.bytes for sums in account.whole),
        listed_files=account.listed.files + sum(sums.files for sums in account.whole),
        shares=tuple(account.shares),
    )
