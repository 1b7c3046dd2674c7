"""What a pass writes into the ledger: evictions, and the state of each location."""

from cachewarden.enforce.work import Work
from cachewarden.ledger import EvictionRow, Ledger, LocationChanges, LocationState
from cachewarden.report import EvictedEntry, FailedEntry, LocationReport
from cachewarden.spec import LocationSpec
from cachewarden_policies.reasons import Outcome

# What is not there uses nothing, crosses no limit, and has nothing to be confirmed.
ABSENT: LocationChanges = {
    "over_limit_since_ns": None,
    "waiting_since_ns": None,
    "waiting_bytes": None,
    "waiting_entries": None,
    "confirmed_until_ns": None,
    "bytes": None,
    "files": None,
    "entries": None,
    "limit_bytes": None,
    "usage_complete": None,
    "inuse_complete": None,
}


def state_of(ledger: Ledger, spec: LocationSpec) -> LocationState:
    """What is remembered of a location; an empty state for one that is seen for the first time."""
    return ledger.location_state(spec.key) or LocationState(spec.key, spec.name, spec.path)


def newest_pass_ns(ledger: Ledger) -> int:
    """When any location had its last pass, by the wall clock of then; 0 before the first."""
    return max((state.last_pass_ns or 0 for state in ledger.location_states().values()), default=0)


def record_evictions(ledger: Ledger, work: Work, now_ns: int) -> None:
    """Add what went, and what failed, to the history."""
    spec = work.survey.spec
    rows = [_row(spec, each, each.freed_bytes, "removed", now_ns) for each in work.evicted]
    rows += [_row(spec, each, 0, "failed", now_ns) for each in work.failed.values()]
    if rows or work.intents:
        ledger.record_evictions(rows, now_ns, work.intents)


def _row(
    spec: LocationSpec, each: EvictedEntry | FailedEntry, freed_bytes: int, outcome: str, now_ns: int
) -> EvictionRow:
    return EvictionRow(
        time_ns=now_ns,
        location=spec.key,
        name=spec.name,
        path=spec.path,
        entry=each.entry,
        bytes=each.bytes,
        freed_bytes=freed_bytes,
        reason=each.reason,
        outcome=outcome,
        last_use_ns=each.last_use_ns,
        last_use_source=each.last_use_source,
        owner=each.owner,
    )


def record_pass(ledger: Ledger, work: Work, report: LocationReport, now_ns: int) -> None:
    """The location's state after a pass. A wait for confirmation begins, or ends, here."""
    spec = work.survey.spec
    before = state_of(ledger, spec)
    plan = work.last_plan
    waiting = plan is not None and plan.brake
    over = report.outcome in (Outcome.SHORT, Outcome.WAITING)
    held = (
        [verdict for verdict in plan.verdicts if verdict.reason == "confirmation"] if plan and waiting else []
    )
    sizes = [work.location.entries[verdict.index].bytes for verdict in held]
    ledger.update_location(
        spec,
        now_ns,
        layout=report.layout,
        last_pass_ns=now_ns,
        last_success_ns=now_ns,
        outcome=report.outcome,
        detail=report.warnings[0] if report.warnings else None,
        over_limit_since_ns=(before.over_limit_since_ns or now_ns) if over else None,
        waiting_since_ns=(before.waiting_since_ns or now_ns) if waiting else None,
        waiting_bytes=sum(sizes) if waiting else None,
        waiting_entries=len(sizes) if waiting else None,
        # A confirmation is for this mountain, not for the next one.
        confirmed_until_ns=before.confirmed_until_ns if over and before.confirmed(now_ns) else None,
        bytes=report.bytes_after,
        files=work.location.usage_files,
        entries=len(work.location.entries),
        limit_bytes=report.limit_bytes,
        available=True,
        usage_complete=report.usage_complete,
        inuse_complete=report.inuse_complete,
        recency_source=work.survey.recency_source,
    )


def record_missing(ledger: Ledger, spec: LocationSpec, report: LocationReport, now_ns: int) -> None:
    """A location that could not be looked at keeps the figures it had, unless it is known to be absent."""
    changes: LocationChanges = {
        "last_pass_ns": now_ns,
        "outcome": report.outcome,
        "detail": report.warnings[0] if report.warnings else None,
        "available": False,
    }
    if report.absent:
        changes |= ABSENT
    ledger.update_location(spec, now_ns, **changes)
