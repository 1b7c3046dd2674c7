"""Limits at one moment: what is measured, whether it crossed, and how much has to go.

A limit is crossed when the measure is beyond it; being equal is fine. What has to go then is the
distance to the target. Below its limit a bound has slack (a negative excess): what was chosen for
another bound may be given back only as far as that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from cachewarden_policies.policy import Amount, Limits, Policy
from cachewarden_policies.reasons import EvictReason
from cachewarden_policies.situation import Filesystem, Location, Usage


class Dimension(IntEnum):
    """What a limit counts; also the place of it in a tuple of gains."""

    BYTES = 0
    FILES = 1
    ENTRIES = 2
    DISK_BYTES = 3
    DISK_INODES = 4


@dataclass(frozen=True, slots=True)
class Bound:
    """One limit. `key` is its name in the configuration, `measure` what is used (or free, for a floor).

    `excess` is what has to go in the bound's dimension; zero or negative when nothing has to.
    """

    key: str
    dimension: Dimension
    reason: EvictReason
    measure: int
    limit: int
    target: int
    excess: int
    hard: bool = False

    @property
    def is_floor(self) -> bool:
        """Whether the measure must not fall below the limit, rather than not rise above it."""
        return self.dimension >= Dimension.DISK_BYTES

    @property
    def crossed(self) -> bool:
        """Whether the measure is beyond the limit now."""
        return self.measure < self.limit if self.is_floor else self.measure > self.limit


_OWN_REASONS: Mapping[Dimension, EvictReason] = {
    Dimension.BYTES: EvictReason.OVER_SIZE,
    Dimension.FILES: EvictReason.OVER_FILES,
    Dimension.ENTRIES: EvictReason.OVER_ENTRIES,
}
_POOL_REASONS = dict.fromkeys(_OWN_REASONS, EvictReason.OVER_POOL_SIZE)
_ALL_REASONS = dict.fromkeys(_OWN_REASONS, EvictReason.OVER_SIZE)

# `evict_all` counts entries and files as well, so that empty entries go too.
_NOTHING = Amount(absolute=0)


def effective_limits(policy: Policy) -> Limits:
    """The policy's limits, where `evict_all` stands for limits of nothing."""
    if not policy.evict_all:
        return policy.limits
    hard = policy.limits.hard_max_size
    return Limits(0, _NOTHING, hard, 0, _NOTHING, 0, _NOTHING)


def location_bounds(location: Location) -> list[Bound]:
    """The limits of one location, against its usage before anything goes.

    A pass that started above a limit goes on to the target, also when it plans again half-way with
    a usage between the two: otherwise one busy victim would end it early.
    """
    if location.policy.evict_all:
        everything = _evictable(location)
        return _limit_bounds(effective_limits(location.policy), everything, everything, _ALL_REASONS)
    limits = effective_limits(location.policy)
    return _limit_bounds(limits, location.usage, location.usage_at_start, _OWN_REASONS)


def _evictable(location: Location) -> Usage:
    """What entries hold: "keep nothing" is about entries, and foreign files never make it short."""
    kept = [share for share in location.shares if share.kept]
    return Usage(
        sum(entry.bytes for entry in location.entries) - sum(share.bytes for share in kept),
        sum(entry.files for entry in location.entries) - sum(share.files for share in kept),
        len(location.entries),
    )


def pool_bounds(scope: str, limits: Limits, members: Sequence[Location], usage: Usage) -> list[Bound]:
    """The limits of a pool, against `usage`: what its members hold once what they give up anyway is gone.

    A pool that was above a limit then goes on to the target when the pass plans again, as a location does.
    Only what went for the pool itself counts: expired entries that went before kept it below.
    """
    none = Usage()
    gone = sum((member.circumstances.evicted_for.get(scope, none) for member in members), none)
    start = sum((member.usage_at_start for member in members), none)
    # What was written since the pass began never made the pool greater than it was at the start.
    peak = Usage(
        max(usage.bytes, min(usage.bytes + gone.bytes, start.bytes)),
        max(usage.files, min(usage.files + gone.files, start.files)),
        max(usage.entries, min(usage.entries + gone.entries, start.entries)),
    )
    return _limit_bounds(limits, usage, peak, _POOL_REASONS)


def _limit_bounds(
    limits: Limits, usage: Usage, start: Usage, reasons: Mapping[Dimension, EvictReason]
) -> list[Bound]:
    out: list[Bound] = []
    soft = (
        ("max_size", Dimension.BYTES, limits.max_size, limits.target_size, usage.bytes, start.bytes),
        ("max_files", Dimension.FILES, limits.max_files, limits.target_files, usage.files, start.files),
        (
            "max_entries",
            Dimension.ENTRIES,
            limits.max_entries,
            limits.target_entries,
            usage.entries,
            start.entries,
        ),
    )
    for key, dimension, limit, amount, measure, peak in soft:
        if limit is not None:
            target = min(amount.of(limit), limit)
            excess = measure - (target if peak > limit else limit)
            out.append(Bound(key, dimension, reasons[dimension], measure, limit, target, excess))
    hard = limits.hard_max_size
    if hard is not None:
        reason = reasons[Dimension.BYTES]
        if reason is EvictReason.OVER_SIZE:
            reason = EvictReason.OVER_HARD_SIZE
        excess = usage.bytes - hard
        out.append(
            Bound("hard_max_size", Dimension.BYTES, reason, usage.bytes, hard, hard, excess, hard=True)
        )
    return out


def floor_bounds(
    filesystem: Filesystem, policies: Sequence[Policy], freed_bytes: int = 0, freed_inodes: int = 0
) -> list[Bound]:
    """What must stay free on a filesystem: the strictest floor over its locations' policies.

    `freed_*` is what this plan frees anyway. It raises what is available; gains that are only
    pending are credited against the need, but do not hide that the floor is crossed. A filesystem that
    makes inodes as it needs them (btrfs reports 0 of 0) has no floor for them.
    """
    size, inodes = filesystem.size_bytes, filesystem.size_inodes
    floors = [policy.floor for policy in policies]
    avail = filesystem.avail_bytes + freed_bytes
    soft = _strictest([floor.min_free for floor in floors], size)
    target = _strictest([floor.target_free or floor.min_free for floor in floors if floor.min_free], size)
    hard = _strictest([floor.hard_min_free for floor in floors], size)
    files = _strictest([floor.min_free_files for floor in floors], inodes) if inodes else None
    asked = filesystem.requested_free
    out: list[Bound] = []

    def add(key: str, reason: EvictReason, limit: int | None, target: int | None, *, hard: bool) -> None:
        if limit is not None:
            goal = max(limit, target or 0)
            excess = (goal if avail < limit else limit) - avail - filesystem.pending_bytes
            out.append(Bound(key, Dimension.DISK_BYTES, reason, avail, limit, goal, excess, hard))

    add("min_free", EvictReason.LOW_FREE_SPACE, soft, target, hard=False)
    if files is not None:
        free = filesystem.avail_inodes + freed_inodes
        excess = files - free - filesystem.pending_inodes
        reason = EvictReason.LOW_FREE_FILES
        out.append(Bound("min_free_files", Dimension.DISK_INODES, reason, free, files, files, excess))
    add("free", EvictReason.REQUESTED, asked or None, asked, hard=False)
    add("hard_min_free", EvictReason.LOW_FREE_SPACE, hard, hard, hard=True)
    return out


def _strictest(amounts: Sequence[Amount | None], whole: int) -> int | None:
    """The greatest of the amounts that are set; None when none is."""
    return max((amount.of(whole) for amount in amounts if amount is not None), default=None)
