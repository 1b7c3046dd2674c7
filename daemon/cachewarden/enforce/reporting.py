"""From what a pass did, or a plan says, to the report that people, programs and metrics read."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from cachewarden.enforce.showing import HoldersByName, Shown
from cachewarden.enforce.survey import Survey
from cachewarden.enforce.work import Work
from cachewarden.inventory import Inventory
from cachewarden.kernel.statfs import usage
from cachewarden.paths import show
from cachewarden.recency import atime_usable
from cachewarden.report import EvictedEntry, Gauges, LocationReport, Room, SparedEntry
from cachewarden.spec import LocationSpec
from cachewarden_policies.reasons import EvictReason, KeepReason, Outcome
from cachewarden_policies.verdicts import LocationPlan, Plan, Verdict


def missing(spec: LocationSpec, reason: str, outcome: Outcome = Outcome.UNAVAILABLE) -> LocationReport:
    """The report of a location that could not be looked at."""
    return LocationReport(
        spec.name, spec.path, spec.layout, outcome, usage_complete=False, warnings=(reason,)
    )


def of_pass(work: Work, plan: Plan, disk_freed_bytes: int, *, inuse_complete: bool) -> LocationReport:
    """What became of one location. `plan` is the last one of the pass: what it still wants is short."""
    survey, last = work.survey, plan.of(work.key)
    first = work.first_plan or last
    # A pass that was stopped, or that gave up because nothing helps, still wants something.
    unfinished = bool(last.evictions) and not last.brake
    spared = dict(work.spared)
    if _wanted(first) or _wanted(last):
        for verdict in last.verdicts:
            entry = work.survey.facts[work.numbers[verdict.index]]
            if entry.name not in spared and entry.name not in work.failed and _guarded(verdict):
                assert isinstance(verdict.reason, KeepReason)
                holders = work.sighted.get(entry.name, ())
                spared[entry.name] = SparedEntry(entry.name, entry.bytes, verdict.reason, holders)
    return LocationReport(
        name=survey.spec.name,
        path=survey.spec.path,
        layout=survey.inventory.layout,
        outcome=Outcome.SHORT if unfinished else _outcome(last, evicted=bool(work.evicted) or work.pruned),
        bytes_before=work.bytes_before,
        bytes_after=work.location.usage_bytes,
        limit_bytes=first.limit_bytes,
        target_bytes=first.target_bytes,
        need_bytes=work.need_bytes,
        shortfall_bytes=plan.shortfall_of(work.key),
        usage_complete=survey.inventory.complete,
        inuse_complete=inuse_complete,
        evicted=tuple(work.evicted),
        spared=tuple(spared.values()),
        failed=tuple(work.failed.values()),
        foreign_bytes=survey.inventory.foreign_bytes,
        blocked=last.blocked,
        disk_freed_bytes=disk_freed_bytes,
        warnings=(*survey.warnings, *_futile(work)),
        gauges=_gauges(work, last),
    )


def _futile(work: Work) -> Iterator[str]:
    if work.futile:
        yield (
            f"evicting gave {show(work.survey.mount.point)} nothing back (snapshots, reflinks, or somebody "
            "who writes as fast): nothing more goes for free space until there is more of it"
        )


def _gauges(work: Work, plan: LocationPlan) -> Gauges:
    survey, space = work.survey, usage(work.survey.root_fd)
    floor = survey.spec.policy.floor.min_free
    return Gauges(
        files=work.location.usage_files,
        entries=len(work.location.entries),
        trash_bytes=survey.inventory.trash_bytes,
        atime_usable=atime_usable(survey.atime_mode),
        recency_source=survey.recency_source,
        enforcing=work.location.circumstances.enforce,
        hard_limit_bytes=plan.hard_limit_bytes,
        oldest_use_ns=min((entry.last_use_ns for entry in work.location.entries), default=None),
        room=Room(
            dev=survey.inventory.dev,
            point=survey.mount.point,
            size_bytes=space.size_bytes,
            avail_bytes=space.avail_bytes,
            inodes=space.size_inodes,
            avail_inodes=space.avail_inodes,
            min_free_bytes=floor.of(space.size_bytes) if floor is not None else None,
        ),
        owned=_owned(survey.inventory),
    )


def _owned(inventory: Inventory) -> dict[int, int]:
    found: Counter[int] = Counter()
    for entry in inventory.entries:
        found[entry.owner] += entry.measure.bytes
    return dict(found)


def of_request(report: LocationReport) -> LocationReport:
    """The report of `evict PATH`: no limit was asked about, only whether the entry went."""
    gone = Outcome.TRIMMED if report.evicted else Outcome.SHORT
    kept = tuple(each for each in report.spared if each.reason is not KeepReason.WITHIN_LIMITS)
    return replace(
        report,
        outcome=gone,
        limit_bytes=None,
        target_bytes=None,
        need_bytes=0,
        shortfall_bytes=0,
        blocked={},
        spared=kept,
    )


def of_plan(
    survey: Survey, shown: Shown, enforced: Shown | None = None, *, inuse_complete: bool
) -> LocationReport:
    """What a pass would do to one location, with a verdict for each of its entries.

    `enforced` is what would be shown of a location that only reports, if it were enforced.
    """
    mine = shown.plan.of(survey.spec.key)
    would = mine.evictions
    kept = [verdict for verdict in mine.verdicts if not verdict.evict]
    return LocationReport(
        name=survey.spec.name,
        path=survey.spec.path,
        layout=survey.inventory.layout,
        outcome=_outcome(mine, evicted=bool(would)),
        bytes_before=survey.inventory.bytes,
        bytes_after=survey.inventory.bytes - mine.planned_bytes,
        limit_bytes=mine.limit_bytes,
        target_bytes=mine.target_bytes,
        need_bytes=shown.plan.need_of(mine.location),
        shortfall_bytes=shown.plan.shortfall_of(mine.location),
        usage_complete=survey.inventory.complete,
        inuse_complete=inuse_complete,
        evicted=tuple(_would_evict(survey, verdict) for verdict in would),
        spared=tuple(_kept(survey, verdict, shown.holders) for verdict in kept),
        foreign_bytes=survey.inventory.foreign_bytes,
        blocked=mine.blocked,
        warnings=survey.warnings,
        if_enforced=None if survey.spec.enforce or enforced is None else _if_enforced(survey, enforced),
    )


def _if_enforced(survey: Survey, shown: Shown) -> tuple[EvictedEntry, ...]:
    return tuple(_would_evict(survey, verdict) for verdict in shown.plan.of(survey.spec.key).evictions)


def absent(spec: LocationSpec) -> LocationReport:
    """A configured path that is not there. No error: a user deleted his cache, and may make a new one.

    What must be a mount and is none is unavailable: there the cache is somewhere else.
    """
    if spec.must_be_mount:
        return missing(spec, f"{show(spec.path)}: nothing is mounted there (must_be_mount)")
    reason = f"{show(spec.path)}: is not there; it is taken up when it appears"
    return LocationReport(
        spec.name, spec.path, spec.layout, Outcome.WITHIN_LIMITS, warnings=(reason,), absent=True
    )


def _would_evict(survey: Survey, verdict: Verdict) -> EvictedEntry:
    entry, facts = survey.inventory.entries[verdict.index], survey.facts[verdict.index]
    assert isinstance(verdict.reason, EvictReason)
    return EvictedEntry(
        entry=entry.name,
        bytes=facts.bytes,
        freed_bytes=verdict.disk_gain_bytes,
        reason=verdict.reason,
        last_use_ns=facts.last_use_ns,
        last_use_source=facts.last_use_source,
        dev=entry.dev,
        ino=entry.ino,
        newest_ns=entry.measure.newest_ns,
        owner=entry.owner,
    )


def _kept(survey: Survey, verdict: Verdict, holders: HoldersByName) -> SparedEntry:
    facts = survey.facts[verdict.index]
    assert isinstance(verdict.reason, KeepReason)
    who = holders.get((verdict.location, facts.name), ())
    return SparedEntry(facts.name, facts.bytes, verdict.reason, who)


def _guarded(verdict: Verdict) -> bool:
    return verdict.reason not in (KeepReason.WITHIN_LIMITS, KeepReason.NO_GAIN) and not verdict.evict


def _wanted(plan: LocationPlan) -> bool:
    return plan.over_limit or plan.brake or bool(plan.evictions)


def _outcome(mine: LocationPlan, *, evicted: bool) -> Outcome:
    if mine.brake:
        return Outcome.WAITING
    if mine.short:
        return Outcome.SHORT
    return Outcome.TRIMMED if evicted else Outcome.WITHIN_LIMITS
