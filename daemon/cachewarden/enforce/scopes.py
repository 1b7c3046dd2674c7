"""Which locations share a limit: the pools and filesystems of a pass, as the planner sees them."""

from collections.abc import Iterable, Mapping, Sequence

from cachewarden.enforce.survey import Survey
from cachewarden.paths import show
from cachewarden.spec import LocationSpec, PoolSpec, Territory
from cachewarden_policies.policy import Floor
from cachewarden_policies.situation import Filesystem, Pool


def pools(specs: Sequence[PoolSpec], locations: Iterable[LocationSpec]) -> list[Pool]:
    """The pools over the given locations; a glob's matches all belong, a pool without any is left out."""
    known = list(locations)
    found = []
    for spec in specs:
        members = tuple(each.key for each in known if each.name in spec.locations)
        if members:
            found.append(Pool(spec.name, spec.limits, members))
    return found


def filesystems(surveys: Sequence[Survey], requested_free: int = 0) -> list[Filesystem]:
    """The filesystems that must keep room free, by a policy's floor or because somebody asked.

    Without either, a filesystem is nobody's scope: nothing has to wait for it to show what was freed.
    """
    # By the superblock's number and not by st_dev, which differs between subvolumes of one btrfs.
    by_device: dict[bytes, list[Survey]] = {}
    for survey in surveys:
        by_device.setdefault(survey.mount.major_minor, []).append(survey)
    found = []
    for members in by_device.values():
        if not requested_free and all(each.spec.policy.floor == Floor() for each in members):
            continue
        space = members[0].space
        found.append(
            Filesystem(
                name=show(members[0].mount.point),
                size_bytes=space.size_bytes,
                avail_bytes=space.avail_bytes,
                size_inodes=space.size_inodes,
                avail_inodes=space.avail_inodes,
                members=tuple(each.spec.key for each in members),
                requested_free=requested_free,
            )
        )
    return found


def groups(territory: Territory, device: Mapping[str, bytes]) -> list[list[LocationSpec]]:
    """Locations that one pass must look at together: those on one filesystem, or in one pool.

    `device` has the filesystem of each location, by key. Order is kept.
    """
    group_of: dict[str, list[LocationSpec]] = {}
    for spec in territory.locations:
        joined = [spec]
        for other in {id(each): each for each in group_of.values()}.values():
            if any(_together(spec, each, device, territory.pools) for each in other):
                joined = [*other, *joined]
        for each in joined:
            group_of[each.key] = joined
    return list({id(each): each for each in group_of.values()}.values())


def _together(
    one: LocationSpec, other: LocationSpec, device: Mapping[str, bytes], specs: Sequence[PoolSpec]
) -> bool:
    if device.get(one.key) is not None and device.get(one.key) == device.get(other.key):
        return True
    return any(one.name in spec.locations and other.name in spec.locations for spec in specs)
