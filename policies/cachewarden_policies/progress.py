"""How a location looks after a part of a plan was carried out, so that what is left can be planned anew.

A victim may turn out to be busy. Planning again with what is known now, instead of taking the next
in the old plan, keeps every property of a plan: minimal, in order, guards respected.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from cachewarden_policies.reasons import KeepReason
from cachewarden_policies.situation import Circumstances, Entry, Location, Share, Usage


@dataclass(frozen=True, slots=True)
class Progress:
    """`location` as it is now. `kept` maps its entries' indices to those before.

    `gained_bytes`/`gained_files` came off the location, `disk_bytes`/`disk_inodes` are what the
    filesystem should have got back.
    """

    location: Location
    kept: tuple[int, ...]
    gained_bytes: int
    gained_files: int
    disk_bytes: int
    disk_inodes: int


def book(location: Location, progress: Progress, scopes: Mapping[int, str]) -> Circumstances:
    """The circumstances after `progress`, which removed what `scopes` names from `location`.

    `scopes` says by index which scope asked for what was removed. Data that was shared between victims
    of a location and of a pool counts for the pool: it went with what the pool took last.
    """
    so_far = progress.location.circumstances
    evicted_for = dict(so_far.evicted_for)
    before = {index for index, scope in scopes.items() if not scope.startswith("pool:")}
    for pool in sorted(set(scopes.values()) - {scopes[index] for index in before}):
        mine = {index for index, scope in scopes.items() if scope == pool}
        gained = _gained(location, before | mine) - _gained(location, before)
        evicted_for[pool] = evicted_for.get(pool, Usage()) + gained
        before |= mine
    return replace(
        so_far,
        evicted_bytes=so_far.evicted_bytes + progress.gained_bytes,
        evicted_entries=so_far.evicted_entries + len(scopes),
        evicted_for=evicted_for,
    )


def at_rest(location: Location) -> Location:
    """A location as a later pass sees it, that leaves it alone: nothing went from it so far."""
    fresh = replace(
        location.circumstances,
        bytes_at_start=0,
        files_at_start=0,
        entries_at_start=0,
        evicted_bytes=0,
        evicted_entries=0,
        evicted_for={},
    )
    return replace(location, circumstances=fresh)


def _gained(location: Location, removed: Collection[int]) -> Usage:
    progress = advance(location, removed, {})
    return Usage(progress.gained_bytes, progress.gained_files, len(removed))


def advance(location: Location, removed: Collection[int], vetoes: Mapping[int, KeepReason]) -> Progress:
    """`location` without the entries `removed`, and with new hard guards `vetoes` (by index).

    Data shared with one remaining entry becomes that entry's own; data shared with none is gone,
    unless it is `kept`.
    """
    gone = set(removed)
    kept = tuple(index for index in range(len(location.entries)) if index not in gone)
    moved = {old: new for new, old in enumerate(kept)}
    gain = [0, 0, 0, 0]
    for index in gone:
        entry = location.entries[index]
        _add(gain, (entry.own_bytes, entry.own_files, entry.disk_bytes, entry.disk_inodes))
    inherited: dict[int, list[int]] = {}
    shares: list[Share] = []
    renumbered: dict[int, int] = {}
    for number, share in enumerate(location.shares):
        owners = tuple(moved[owner] for owner in share.owners if owner in moved)
        sums = (share.bytes, share.files, *((0, 0) if share.outside else (share.bytes, share.files)))
        if share.kept or len(owners) > 1:
            renumbered[number] = len(shares)
            shares.append(replace(share, owners=owners))
        elif owners:
            _add(inherited.setdefault(owners[0], [0, 0, 0, 0]), sums)
        else:
            _add(gain, sums)
    entries = [
        _entry(location.entries[old], inherited.get(new), renumbered, vetoes.get(old))
        for new, old in enumerate(kept)
    ]
    after = replace(
        location,
        usage_bytes=location.usage_bytes - gain[0],
        usage_files=location.usage_files - gain[1],
        entries=entries,
        shares=tuple(shares),
    )
    return Progress(after, kept, *gain)


def _add(sums: list[int], more: tuple[int, ...]) -> None:
    for position, number in enumerate(more):
        sums[position] += number


def _entry(
    entry: Entry, inherited: list[int] | None, renumbered: Mapping[int, int], veto: KeepReason | None
) -> Entry:
    if inherited is None and veto is None and not entry.shares:
        return entry
    own = inherited or [0, 0, 0, 0]
    return replace(
        entry,
        own_bytes=entry.own_bytes + own[0],
        own_files=entry.own_files + own[1],
        disk_bytes=entry.disk_bytes + own[2],
        disk_inodes=entry.disk_inodes + own[3],
        shares=tuple(renumbered[share] for share in entry.shares if share in renumbered),
        veto=entry.veto or veto,
    )
