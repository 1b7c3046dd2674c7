"""What the walk met that keeps an entry from going whole."""

from cachewarden.scan.accounts import Accounts
from cachewarden.scan.regions import Kind, Regions
from cachewarden.scan.tally import Tally
from cachewarden_policies.reasons import KeepReason


def find_obstacles(accounts: Accounts, regions: Regions, tally: Tally, keeps: dict[int, KeepReason]) -> None:
    """Set obstacles: the first of mount point, unreadable part, excluded part, guarded claim inside.

    `keeps` are hard guards of claims by index. An entry that lies around a guarded one would take it
    along. What is met in shared data is an obstacle to all who share it.
    """
    met = [(region, KeepReason.MOUNTPOINT) for _, region in tally.mounts]
    met += ((region, KeepReason.UNKNOWN) for _, _, region in tally.unreadable)
    met += ((region, KeepReason.PROTECTED) for region in sorted(tally.excluded))
    for number, reason in met:
        concerned = accounts.around(regions, number).union(accounts.owners(regions.numbered[number]))
        _set(accounts, concerned, reason)
    for number, region in enumerate(regions.numbered):
        if region.kind is Kind.CLAIM and region.index in keeps and number in tally.roots:
            around = accounts.around(regions, number).difference(accounts.owners(region))
            _set(accounts, around, keeps[region.index])


def _set(accounts: Accounts, positions: set[int], reason: KeepReason) -> None:
    for position in positions:
        account = accounts.entries[position]
        if account.obstacle is None:
            account.obstacle = reason
