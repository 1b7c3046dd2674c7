"""The limits that apply to a location, as sentences for `explain`."""

from collections.abc import Iterator, Sequence

from cachewarden.units import format_duration, format_size
from cachewarden_policies.policy import Policy
from cachewarden_policies.situation import Filesystem, Location, Pool


def limits_in_words(
    location: Location, pools: Sequence[Pool], filesystems: Sequence[Filesystem], usage: dict[str, int]
) -> list[str]:
    """What limits, expiries and guards hold for one location. `usage` has bytes by location key."""
    return [
        *_sizes(location),
        *_pools(location, pools, usage),
        *_disks(location, filesystems),
        *_times(location.policy),
    ]


def _sizes(location: Location) -> Iterator[str]:
    limits, used = location.policy.limits, location.usage_bytes
    if location.policy.evict_all:
        yield "evict_all: whatever no guard holds goes"
    if limits.max_size is not None:
        target = format_size(limits.target_size.of(limits.max_size))
        yield f"max_size {format_size(limits.max_size)}, used {format_size(used)}; above it, down to {target}"
    if limits.hard_max_size is not None:
        yield f"hard_max_size {format_size(limits.hard_max_size)}; above it, soft guards yield"
    if limits.max_files is not None:
        yield f"max_files {limits.max_files}, there are {location.usage_files}"
    if limits.max_entries is not None:
        yield f"max_entries {limits.max_entries}, there are {len(location.entries)}"


def _pools(location: Location, pools: Sequence[Pool], usage: dict[str, int]) -> Iterator[str]:
    for pool in pools:
        if location.key in pool.members and pool.limits.max_size is not None:
            used = sum(usage.get(member, 0) for member in pool.members)
            limit = format_size(pool.limits.max_size)
            yield f"pool {pool.name}: max_size {limit}, used {format_size(used)}"


def _disks(location: Location, filesystems: Sequence[Filesystem]) -> Iterator[str]:
    floor = location.policy.floor
    for disk in filesystems:
        if location.key in disk.members and floor.min_free is not None:
            wanted = format_size(floor.min_free.of(disk.size_bytes))
            yield f"min_free {wanted} on {disk.name}, where {format_size(disk.avail_bytes)} are free"


def _times(policy: Policy) -> Iterator[str]:
    if policy.max_idle is not None:
        yield f"max_idle {format_duration(policy.max_idle)}: unused for longer goes, whatever the size"
    if policy.max_age is not None:
        yield f"max_age {format_duration(policy.max_age)}: older goes, whatever the size"
    if policy.min_idle:
        yield f"min_idle {format_duration(policy.min_idle)}: used more recently stays, below hard limits"
    if policy.keep_newest:
        yield f"keep_newest {policy.keep_newest}: the most recently used stay, below hard limits"
