"""Carrying out a plan: in rounds, because a victim is tried and not assumed.

A round tries the plan's victims in their order. Who turns out to be busy gets a guard, and the rest
is planned anew, until a plan asks for nothing that was not tried. When filesystems are short of space,
what they really got back is asked only after the planned gains cover the need: xfs and btrfs free
late, and a loop that looks after each victim flushes the cache.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from cachewarden.enforce.clockwatch import Reading
from cachewarden.enforce.journal import Journal
from cachewarden.enforce.work import Work
from cachewarden.evict import Victim
from cachewarden.kernel.statfs import usage
from cachewarden.kernel.syncfs import syncfs
from cachewarden.report import (
    EvictedEntry,
    EvictionOutcome,
    Failed,
    FailedEntry,
    Gone,
    Removed,
    Spared,
    SparedEntry,
)
from cachewarden_policies.planning import make_plan
from cachewarden_policies.progress import at_rest
from cachewarden_policies.reasons import EvictReason, KeepReason
from cachewarden_policies.situation import Filesystem, Location, Pool, Situation
from cachewarden_policies.verdicts import Plan, Verdict

BATCH = 1024  # victims for one call: what is unlinked runs beside the next, and people see progress
_SETTLE_SECONDS = 1.0
_POLL_SECONDS = 0.05


@dataclass(slots=True)
class Scene:
    """All that a pass plans over: the locations in hand, others as they were last seen, the disks."""

    time: Reading
    works: Sequence[Work]
    elsewhere: Sequence[Location]
    pools: Sequence[Pool]
    filesystems: list[Filesystem]
    intend: Callable[[Work, Sequence[Verdict], Sequence[Victim]], None]  # told of victims ahead of the try
    requested: bool = False  # somebody named the victim: that is the reason then

    def named(self, verdict: Verdict) -> Verdict:
        """The verdict with the reason that people are told."""
        return replace(verdict, reason=EvictReason.REQUESTED) if self.requested else verdict

    def plan(self) -> Plan:
        """Plan with what is known now."""
        locations = [work.location for work in self.works]
        others = map(at_rest, self.elsewhere)
        return make_plan(
            Situation(
                self.time.wall_ns, [*locations, *others], self.pools, self.filesystems, self.time.sure_ns
            )
        )


def carry_out(scene: Scene, journal: Journal, stop: Callable[[], bool], look: Callable[[Work], None]) -> Plan:
    """Evict until a plan asks for nothing more; returns that last plan.

    `stop` ends it between victims. `look` is called for each location before anything is tried.
    """
    works = {work.key: work for work in scene.works}
    fruitless, looked = 0, False
    while True:
        plan = _note(scene)
        todo = [verdict for verdict in plan.evictions if verdict.location in works]
        if stop():
            return plan
        if todo and not looked:
            looked = True
            for work in scene.works:
                look(work)
            continue
        if todo:
            _round(scene, works, todo, journal, stop)
            continue
        gained = _settle(scene)
        if gained is None:
            return plan
        fruitless = 0 if gained else fruitless + 1
        if fruitless > 1:
            # Snapshots, reflinks, or somebody who writes as fast as we free: going on would only empty
            # the cache. What is still wanted is planned once more, with what the disks really show.
            scene.filesystems = [replace(each, futile=True) for each in scene.filesystems]
            return _note(scene)


def _note(scene: Scene) -> Plan:
    plan = scene.plan()
    for work in scene.works:
        work.last_plan = plan.of(work.key)
        if work.first_plan is None:
            work.first_plan, work.need_bytes = work.last_plan, plan.need_of(work.key)
    return plan


def _round(
    scene: Scene, works: dict[str, Work], todo: list[Verdict], journal: Journal, stop: Callable[[], bool]
) -> None:
    for key, work in works.items():
        mine = [verdict for verdict in todo if verdict.location == key]
        if mine:
            journal.planned(work.survey.spec, sum(verdict.gain_bytes for verdict in mine))
        removed: dict[int, str] = {}
        vetoes: dict[int, KeepReason] = {}
        for together in _independent(work, [scene.named(verdict) for verdict in mine]):
            if stop():
                break
            gone = work.removed | {work.numbers[index] for index in removed}
            victims = [work.victims.of(work.numbers[verdict.index], gone) for verdict in together]
            scene.intend(work, together, victims)
            outcomes = work.evictor.evict_all(victims, stop)
            for verdict, outcome in zip(together, outcomes, strict=False):  # fewer outcomes: stopped
                veto = _book(work, verdict, outcome, journal)
                if veto is None:
                    assert verdict.scope is not None
                    removed[verdict.index] = verdict.scope
                else:
                    vetoes[verdict.index] = veto
        before = work.disk_bytes, work.disk_inodes
        work.take(removed, vetoes)
        _credit(scene, key, work.disk_bytes - before[0], work.disk_inodes - before[1])


def _independent(work: Work, verdicts: list[Verdict]) -> Iterator[list[Verdict]]:
    """Runs of victims none of which decides what goes along with another.

    Whether shared data goes with a victim depends on whether its other owners are gone by then.
    """
    together: list[Verdict] = []
    shares: set[int] = set()
    for verdict in verdicts:
        inventory = work.survey.inventory
        entry = inventory.entries[work.numbers[verdict.index]]
        mine = {share for share in entry.shares if inventory.shares[share].claim is not None}
        if together and (mine & shares or len(together) == BATCH):
            yield together
            together, shares = [], set()
        together.append(verdict)
        shares |= mine
    if together:
        yield together


def _book(work: Work, verdict: Verdict, outcome: EvictionOutcome, journal: Journal) -> KeepReason | None:
    """Write one outcome down; the new guard of an entry that is still there, or None."""
    number = work.numbers[verdict.index]
    entry, facts = work.survey.inventory.entries[number], work.survey.facts[number]
    spec = work.survey.spec
    assert isinstance(verdict.reason, EvictReason)
    if isinstance(outcome, Removed | Gone):
        freed = outcome.freed_bytes if isinstance(outcome, Removed) else 0
        done = EvictedEntry(
            entry=entry.name,
            bytes=facts.bytes,
            freed_bytes=freed,
            reason=verdict.reason,
            last_use_ns=facts.last_use_ns,
            last_use_source=facts.last_use_source,
            dev=entry.dev,
            ino=entry.ino,
            newest_ns=entry.measure.newest_ns,
            owner=entry.owner,
        )
        work.evicted.append(done)
        work.spared.pop(entry.name, None)  # it had changed, and was measured again
        work.freed_bytes += freed
        journal.evicted(spec, done)
        return None
    if isinstance(outcome, Spared):
        spared = SparedEntry(entry.name, facts.bytes, outcome.reason, outcome.holders)
        work.spared[entry.name] = spared
        work.busy[entry.name] = outcome.reason
        work.changed |= outcome.reason is KeepReason.CHANGED
        journal.spared(spec, spared, outcome.rolled_back)
        return outcome.reason
    assert isinstance(outcome, Failed)
    failed = FailedEntry(
        entry=entry.name,
        errno=outcome.errno,
        path=outcome.path,
        reason=verdict.reason,
        bytes=facts.bytes,
        last_use_ns=facts.last_use_ns,
        last_use_source=facts.last_use_source,
        owner=entry.owner,
    )
    work.failed[entry.name] = failed
    work.busy[entry.name] = KeepReason.UNKNOWN
    journal.failed(spec, failed)
    return KeepReason.UNKNOWN


def _credit(scene: Scene, key: str, size: int, inodes: int) -> None:
    scene.filesystems = [
        replace(
            each,
            pending_bytes=each.pending_bytes + size,
            pending_inodes=each.pending_inodes + inodes,
        )
        if key in each.members
        else each
        for each in scene.filesystems
    ]


def _settle(scene: Scene) -> bool | None:
    """Let the filesystems show what they got back, and believe them from here on.

    None when nothing was pending; otherwise whether any of them has more room than before. Its
    time-out reads a clock of its own: it bounds a wait, and decides nothing.
    """
    pending = [each for each in scene.filesystems if each.pending_bytes or each.pending_inodes]
    if not pending:
        return None
    grown = False
    for filesystem in pending:
        work = next((work for work in scene.works if work.key in filesystem.members), None)
        if work is None:
            continue
        shown = _wait_for(work.survey.root_fd, filesystem)
        grown |= shown.avail_bytes > filesystem.avail_bytes or shown.avail_inodes > filesystem.avail_inodes
        scene.filesystems[scene.filesystems.index(filesystem)] = shown
    return grown


def _wait_for(root_fd: int, filesystem: Filesystem) -> Filesystem:
    syncfs(root_fd)
    deadline = time.monotonic() + _SETTLE_SECONDS
    while True:
        space = usage(root_fd)
        arrived = space.avail_bytes >= filesystem.avail_bytes + filesystem.pending_bytes
        if arrived or time.monotonic() >= deadline:
            return replace(
                filesystem,
                avail_bytes=space.avail_bytes,
                avail_inodes=space.avail_inodes,
                pending_bytes=0,
                pending_inodes=0,
            )
        time.sleep(_POLL_SECONDS)
