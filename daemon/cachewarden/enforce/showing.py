"""Plans that nobody carries out: for `plan`, `list`, `explain` and `status`. Nothing is touched here."""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cachewarden.enforce.sightings import Surroundings, in_use_at_sight
from cachewarden.enforce.survey import Survey
from cachewarden.report import Holder
from cachewarden.tree import open_beneath, open_directory, split_path
from cachewarden_policies.planning import make_plan
from cachewarden_policies.reasons import KeepReason
from cachewarden_policies.situation import Location, Situation
from cachewarden_policies.verdicts import Plan

Inode = tuple[int, int]
EntryKey = tuple[str, int]  # location key, index
HoldersByName = dict[tuple[str, bytes], tuple[Holder, ...]]


@dataclass(frozen=True, slots=True)
class Shown:
    """A plan, the holders that one look at all processes found, by location key and entry name."""

    plan: Plan
    holders: HoldersByName


def plan_with_look(situation: Situation, surveys: Sequence[Survey], surroundings: Surroundings) -> Shown:
    """Plan; look whether processes use what would go; plan anew without those that are in use.

    What is plainly in use is left out from the start, so that its verdict says so. Then the inodes of
    what would go are looked for, which also finds users in containers. As in a pass, only that a look
    into /proc takes the place of leases; it does not see who has a file open through an overlay, so
    that a pass may spare more than this says.
    """
    by_key = {survey.spec.key: survey for survey in surveys}
    holders: HoldersByName = {}
    asked: set[tuple[str, int]] = set()
    locations = {location.key: location for location in situation.locations}
    for survey in surveys:
        for index, found in in_use_at_sight(survey, surroundings).items():
            holders[survey.spec.key, survey.facts[index].name] = found
            locations[survey.spec.key] = _with_veto(locations[survey.spec.key], index)
    while True:
        plan = make_plan(replace(situation, locations=list(locations.values())))
        fresh = [
            (verdict.location, verdict.index)
            for verdict in plan.evictions
            if verdict.location in by_key and (verdict.location, verdict.index) not in asked
        ]
        if not fresh:
            return Shown(plan, holders)
        asked |= set(fresh)
        inodes = {each: inodes_of(by_key[each[0]], each[1]) for each in fresh}
        for (key, index), found in in_use(inodes, surroundings).items():
            holders[key, by_key[key].facts[index].name] = found
            locations[key] = _with_veto(locations[key], index)


def _with_veto(location: Location, index: int) -> Location:
    entries = list(location.entries)
    entries[index] = replace(entries[index], veto=entries[index].veto or KeepReason.IN_USE)
    return replace(location, entries=entries)


def in_use(
    inodes: Mapping[EntryKey, frozenset[Inode]], surroundings: Surroundings
) -> dict[EntryKey, tuple[Holder, ...]]:
    """Who holds which of several sets of inodes, from one look at all processes."""
    everything: frozenset[Inode] = frozenset().union(*inodes.values())
    held = surroundings.who(everything) if everything else {}
    if not held:
        return {}
    found = {
        key: tuple(dict.fromkeys(holder for inode in sorted(mine & held.keys()) for holder in held[inode]))
        for key, mine in inodes.items()
    }
    return {key: holders for key, holders in found.items() if holders}


def inodes_of(survey: Survey, index: int) -> frozenset[Inode]:
    """Everything below an entry's paths, and the shared data that it uses, by (device, inode)."""
    entry = survey.inventory.entries[index]
    shared = (survey.inventory.shares[number].claim for number in entry.shares)
    paths = [*entry.claim.paths, *(claim.path for claim in shared if claim is not None)]
    found: set[Inode] = set()
    for path in paths:
        found |= _below(survey.root_fd, path)
    return frozenset(found)


def _below(root_fd: int, path: bytes) -> set[Inode]:
    found: set[Inode] = set()
    parent, name = split_path(path)
    stack = [(parent, name)]
    while stack:
        directory, name = stack.pop()
        try:
            fd = open_beneath(root_fd, directory)
        except OSError:
            continue  # it vanished, or may not be read: then nobody can say, and a pass will ask leases
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            found.add((status.st_dev, status.st_ino))
            if stat.S_ISDIR(status.st_mode):
                below = open_directory(name, fd)
                try:
                    here = os.path.join(directory, name)
                    stack += [(here, os.fsencode(each)) for each in os.listdir(below)]
                finally:
                    os.close(below)
        except OSError:
            continue
        finally:
            os.close(fd)
    return found
