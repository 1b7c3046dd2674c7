"""The limits that apply to a location, as sentences for `explain`."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from cachewarden.units import format_duration, format_size
from cachewarden_policies.policy import Amount, Limits, Policy
from cachewarden_policies.situation import Filesystem, Location, Pool, Situation, Usage


def limits_in_words(location: Location, situation: Situation) -> list[str]:
    """What limits, expiries and guards hold for one location of a situation."""
    return [
        *_own(location),
        *_pools(location, situation),
        *_disks(location, situation.filesystems),
        *_times(location.policy),
        *_brakes(location),
    ]


def _own(location: Location) -> Iterator[str]:
    if location.policy.evict_all:
        yield "evict_all: whatever no guard holds goes"
    yield from _limits(location.policy.limits, location.usage)


def _pools(location: Location, situation: Situation) -> Iterator[str]:
    for pool in situation.pools:
        if location.key in pool.members:
            for sentence in _limits(pool.limits, _joint(pool, situation.locations)):
                yield f"pool {pool.name}: {sentence}"


def _joint(pool: Pool, locations: Sequence[Location]) -> Usage:
    return sum((each.usage for each in locations if each.key in pool.members), Usage())


def _limits(limits: Limits, used: Usage) -> Iterator[str]:
    if limits.max_size is not None:
        target = format_size(limits.target_size.of(limits.max_size))
        size = format_size(limits.max_size)
        yield f"max_size {size}, used {format_size(used.bytes)}; above it, down to {target}"
    if limits.hard_max_size is not None:
        yield f"hard_max_size {format_size(limits.hard_max_size)}; above it, soft guards yield"
    if limits.max_files is not None:
        yield _count("max_files", limits.max_files, used.files, limits.target_files)
    if limits.max_entries is not None:
        yield _count("max_entries", limits.max_entries, used.entries, limits.target_entries)


def _count(key: str, limit: int, there: int, target: Amount) -> str:
    return f"{key} {limit}, there are {there}; above it, down to {target.of(limit)}"


def _disks(location: Location, filesystems: Sequence[Filesystem]) -> Iterator[str]:
    floor = location.policy.floor
    for disk in filesystems:
        if location.key not in disk.members:
            continue
        free = format_size(disk.avail_bytes)
        if floor.min_free is not None:
            goal = floor.target_free or floor.min_free
            up = f"; below it, up to {format_size(goal.of(disk.size_bytes))}" if floor.target_free else ""
            wanted = format_size(floor.min_free.of(disk.size_bytes))
            yield f"min_free {wanted} on {disk.name}, where {free} are free{up}"
        if floor.hard_min_free is not None:
            wanted = format_size(floor.hard_min_free.of(disk.size_bytes))
            yield f"hard_min_free {wanted} on {disk.name}, where {free} are free; below it, soft guards yield"
        if floor.min_free_files is not None and disk.size_inodes:
            wanted = str(floor.min_free_files.of(disk.size_inodes))
            yield f"min_free_files {wanted} on {disk.name}, where {disk.avail_inodes} are free"


def _times(policy: Policy) -> Iterator[str]:
    if policy.max_idle is not None:
        yield f"max_idle {format_duration(policy.max_idle)}: unused for longer goes, whatever the size"
    if policy.max_age is not None:
        yield f"max_age {format_duration(policy.max_age)}: older goes, whatever the size"
    if policy.partial_max_idle is not None:
        limit = format_duration(policy.partial_max_idle)
        yield f"partial_max_idle {limit}: a partial download stays so long after its last use, then it goes"
    if policy.min_idle:
        yield f"min_idle {format_duration(policy.min_idle)}: used more recently stays, below hard limits"
    if policy.keep_newest:
        yield f"keep_newest {policy.keep_newest}: the most recently used stay, below hard limits"
    if policy.opener_hold:
        limit = format_duration(policy.opener_hold)
        yield f"opener_hold {limit}: what a process opened stays so long while that process runs"


def _brakes(location: Location) -> Iterator[str]:
    policy = location.policy
    if policy.learn:
        now = "it waits now" if location.circumstances.learning else "it does not wait now"
        limit = format_duration(policy.learn)
        yield f"learn {limit}: so long nothing goes by last use where access times say nothing; {now}"
    if policy.max_share < 1:
        yield f"max_share {_percent(policy.max_share)}: what one pass wants beyond it waits for confirmation"


def _percent(share: Fraction) -> str:
    return f"{float(share * 100):g}%"
