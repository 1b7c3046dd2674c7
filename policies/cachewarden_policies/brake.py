"""`max_share`: the brake for mistakes. A typo in a limit must not empty a cache within minutes.

The brake looks at the chosen victims of one location, in rank order and over the whole pass: they go
up to the share of the bytes that the pass began with, the rest waits until somebody confirms.
"""

from cachewarden_policies.bounds import Dimension
from cachewarden_policies.selection import Selection, share_gains


def allowed_by_brake(selection: Selection, number: int, victims: list[int]) -> frozenset[int] | None:
    """The victims that may go now; None when the brake does not cut.

    `victims` are the location's chosen rows in rank order. The first one that frees anything in a
    pass always may, or an entry larger than the share could never go. Nothing is skipped to fit a
    smaller one in after the cut: what goes is what would have gone first.
    """
    location = selection.roster.locations[number]
    past, share = location.circumstances, location.policy.max_share
    if past.confirmed or share >= 1:
        return None
    budget = int(share * (past.bytes_at_start or location.usage_bytes)) - past.evicted_bytes
    if selection.gained[number][Dimension.BYTES] <= budget:
        return None
    gains, _ = marginal_gains(selection, victims)
    spent = 0
    for place, gain in enumerate(gains):
        first = spent == 0 and past.evicted_entries == 0
        if gain and spent + gain > budget and not first:
            return frozenset(victims[:place])
        spent += gain
    return None


def marginal_gains(selection: Selection, victims: list[int]) -> tuple[list[int], list[int]]:
    """What each victim gives the location, and what the disk, in bytes, given all victims before it.

    Counted anew, as sparing and groups changed what earlier choices were booked with. `victims` must
    be all chosen rows of the locations that they belong to.
    """
    roster = selection.roster
    owners: dict[int, int] = {}
    sizes: list[int] = []
    disks: list[int] = []
    for victim in victims:
        entry = roster.entries[victim]
        size, disk = entry.own_bytes, entry.disk_bytes
        if victim in roster.share_rows:
            for share_row in roster.share_rows[victim]:
                share = roster.shares[share_row]
                owners[share_row] = owners.get(share_row, len(share.owners)) - 1
                if not owners[share_row]:
                    gains = share_gains(share)
                    size += gains[Dimension.BYTES]
                    disk += gains[Dimension.DISK_BYTES]
        sizes.append(size)
        disks.append(disk)
    return sizes, disks
