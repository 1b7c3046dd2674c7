"""Plans that nobody carries out: for `plan`, `list`, `explain` and `status`. Nothing is touched here."""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cachewarden.clock import Clock
from cachewarden.enforce.guards import stronger
from cachewarden.enforce.sightings import Surroundings, in_use_at_sight
from cachewarden.enforce.survey import Survey
from cachewarden.enforce.victims import Victims
from cachewarden.evict import Evictor, Trash
from cachewarden.report import EvictionOutcome, Holder, Spared
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
    """A plan, the holders that were seen, by location key and entry name, and how use was looked up."""

    plan: Plan
    holders: HoldersByName
    in_use_checked: str = "proc"


@dataclass(frozen=True, slots=True)
class Busy:
    """Why an entry that would go stays, and who holds it."""

    reason: KeepReason
    holders: tuple[Holder, ...] = ()


Ask = Callable[[Sequence[EntryKey]], Mapping[EntryKey, Busy]]  # which of these would turn out busy?


def plan_with_look(situation: Situation, surveys: Sequence[Survey], surroundings: Surroundings) -> Shown:
    """Plan; look whether processes use what would go; plan anew without those that are in use.

    A look into /proc takes the place of leases; it does not see who has a file open through an overlay,
    so that a pass may spare more than this says.
    """
    by_key = {survey.spec.key: survey for survey in surveys}

    def look(keys: Sequence[EntryKey]) -> Mapping[EntryKey, Busy]:
        inodes = {(key, index): inodes_of(by_key[key], index) for key, index in keys}
        held = in_use(inodes, surroundings)
        return {key: Busy(KeepReason.IN_USE, holders) for key, holders in held.items()}

    return _plan(situation, by_key, surroundings, look, "proc")


def plan_with_leases(
    situation: Situation, surveys: Sequence[Survey], surroundings: Surroundings, clock: Clock
) -> Shown:
    """The same with leases, which are given back at once: what a pass would find, at this moment."""
    by_key = {survey.spec.key: survey for survey in surveys}
    times = clock, situation.now_ns if situation.sure_ns is None else situation.sure_ns

    def probe(keys: Sequence[EntryKey]) -> Mapping[EntryKey, Busy]:
        found: dict[EntryKey, Busy] = {}
        for key in dict.fromkeys(key for key, _ in keys):
            mine = [index for each, index in keys if each == key]
            victims = Victims(by_key[key], situation.now_ns)
            for index, outcome in zip(
                mine, _probe(by_key[key], victims, mine, surroundings, times), strict=True
            ):
                if isinstance(outcome, Spared):
                    found[key, index] = Busy(outcome.reason, outcome.holders)
        return found

    return _plan(situation, by_key, surroundings, probe, "lease")


def _probe(
    survey: Survey,
    victims: Victims,
    indices: Sequence[int],
    surroundings: Surroundings,
    times: tuple[Clock, int],
) -> list[EvictionOutcome | None]:
    clock, now_ns = times
    with (
        Trash(survey.root_fd, survey.spec.path) as trash,
        Evictor(
            trash, surroundings, now_ns=now_ns, clock=clock, lease_trusted=survey.lease_trusted
        ) as evictor,
    ):
        return evictor.probe_all([victims.of(index, set(indices)) for index in indices])


def _plan(
    situation: Situation,
    by_key: Mapping[str, Survey],
    surroundings: Surroundings,
    ask: Ask,
    checked: str,
) -> Shown:
    """Plan anew until nothing new would go. What is plainly in use is left out from the start, so that
    its verdict says so also where nothing has to go.
    """
    holders: HoldersByName = {}
    asked: set[EntryKey] = set()
    locations = {location.key: location for location in situation.locations}
    for key, survey in by_key.items():
        for index, found in in_use_at_sight(survey, surroundings).items():
            holders[key, survey.facts[index].name] = found
            locations[key] = _with_veto(locations[key], index, KeepReason.IN_USE)
    while True:
        plan = make_plan(replace(situation, locations=list(locations.values())))
        going = [(verdict.location, verdict.index) for verdict in plan.evictions]
        fresh = [each for each in going if each[0] in by_key and each not in asked]
        if not fresh:
            return Shown(plan, holders, checked)
        asked |= set(fresh)
        for (key, index), busy in ask(fresh).items():
            holders[key, by_key[key].facts[index].name] = busy.holders
            locations[key] = _with_veto(locations[key], index, busy.reason)


def _with_veto(location: Location, index: int, reason: KeepReason) -> Location:
    entries = list(location.entries)
    entries[index] = replace(entries[index], veto=stronger(entries[index].veto, reason))
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
