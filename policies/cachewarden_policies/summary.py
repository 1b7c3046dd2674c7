"""From a finished run to the plan that everybody reads: verdicts, needs, shortfalls, what blocks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cachewarden_policies.bounds import Dimension, effective_limits
from cachewarden_policies.brake import marginal_gains
from cachewarden_policies.composing import Run, Scope
from cachewarden_policies.reasons import EvictReason, KeepReason
from cachewarden_policies.selection import Need
from cachewarden_policies.situation import Entry, Location, Situation
from cachewarden_policies.verdicts import LocationPlan, Plan, ScopePlan, Verdict, Verdicts


@dataclass(frozen=True, slots=True)
class Holds:
    """What would go but for restraints and brake: the reason for each row; locations that max_share cut."""

    reasons: dict[int, KeepReason]
    braked: set[int]


def summarise(situation: Situation, run: Run, holds: Holds) -> Plan:
    """Write the plan, locations in the order of the situation."""
    roster = run.selection.roster
    evicted = _evicted(run)
    scopes = [*run.locations, *run.pools, *run.filesystems]
    short = {number for scope in scopes if _is_short(scope) for number in scope.numbers}
    all_reasons = _reasons(run, holds)
    plans: list[LocationPlan] = []
    for location in situation.locations:
        number = roster.number[location.key]
        span = roster.spans[number]
        reasons = all_reasons[span.start : span.stop]
        verdicts = Verdicts(location.key, reasons, evicted[number])
        blocked = _blocked(location.entries, reasons) if number in short else {}
        plan = _location_plan(location, run.locations[number], verdicts)
        plans.append(replace(plan, blocked=blocked, brake=number in holds.braked, short=number in short))
    keys = [location.key for location in roster.locations]
    others = [_scope_plan(scope, keys, Dimension.BYTES, Dimension.FILES) for scope in run.pools]
    others += [_scope_plan(s, keys, Dimension.DISK_BYTES, Dimension.DISK_INODES) for s in run.filesystems]
    return Plan(tuple(plans), tuple(others))


def _evicted(run: Run) -> list[list[Verdict]]:
    """The verdicts that evict, by location, ranks counted over the whole plan."""
    selection = run.selection
    roster = selection.roster
    gains = marginal_gains(selection, list(selection.chosen))
    out: list[list[Verdict]] = [[] for _ in roster.locations]
    for rank, (row, size, disk) in enumerate(zip(selection.chosen, *gains, strict=True)):
        number = roster.where[row]
        index = row - roster.spans[number].start
        choice = selection.chosen[row]
        key = roster.locations[number].key
        out[number].append(Verdict(key, index, choice.reason, rank, choice.scope, size, disk))
    return out


def _reasons(run: Run, holds: Holds) -> list[EvictReason | KeepReason]:
    """One reason for each row: nothing needs to go, passed over, guarded, held back, or gone."""
    selection = run.selection
    guard = selection.roster.guard
    within = KeepReason.WITHIN_LIMITS
    reasons: list[EvictReason | KeepReason] = [reason or within for reason in guard]
    for row, note in selection.notes.items():
        if guard[row] is None:
            reasons[row] = note
    for row, hold in holds.reasons.items():
        reasons[row] = hold
    for row, choice in selection.chosen.items():
        reasons[row] = choice.reason
    return reasons


def _location_plan(location: Location, scope: Scope, verdicts: Verdicts) -> LocationPlan:
    limits = effective_limits(location.policy)
    limit = limits.max_size
    sizes = [need for need in scope.needs if need.dimension == Dimension.BYTES]
    return LocationPlan(
        location.key,
        verdicts,
        limit_bytes=limit,
        target_bytes=None if limit is None else min(limits.target_size.of(limit), limit),
        hard_limit_bytes=limits.hard_max_size,
        need_bytes=_asked(sizes),
        shortfall_bytes=_left(sizes),
        planned_bytes=sum(verdict.gain_bytes for verdict in verdicts.evicted),
        over_limit=any(need.bound.crossed for need in scope.needs),
    )


def _blocked(entries: Sequence[Entry], reasons: Sequence[EvictReason | KeepReason]) -> dict[KeepReason, int]:
    """Bytes of kept entries by the reason that keeps them."""
    blocked: dict[KeepReason, int] = {}
    for entry, reason in zip(entries, reasons, strict=True):
        if isinstance(reason, KeepReason) and reason is not KeepReason.WITHIN_LIMITS:
            blocked[reason] = blocked.get(reason, 0) + entry.bytes
    return blocked


def _scope_plan(scope: Scope, keys: Sequence[str], first: Dimension, second: Dimension) -> ScopePlan:
    sizes = [need for need in scope.needs if need.dimension == first]
    files = [need for need in scope.needs if need.dimension == second]
    members = tuple(keys[number] for number in scope.numbers)
    return ScopePlan(scope.name, members, _asked(sizes), _left(sizes), _asked(files), _left(files))


def _is_short(scope: Scope) -> bool:
    return any(need.remaining > 0 for need in scope.needs)


def _asked(needs: list[Need]) -> int:
    return max((max(need.bound.excess, 0) for need in needs), default=0)


def _left(needs: list[Need]) -> int:
    return max((max(need.remaining, 0) for need in needs), default=0)
