"""One run over all scopes: expiry, then locations, pools, filesystems; later scopes see what went before.

What a location gives up for itself lowers its pools, and what the disk gets back raises free space.
At the end, what a later scope made unnecessary for an earlier one is spared.
"""

from dataclasses import dataclass

from cachewarden_policies.bounds import Bound, Dimension, floor_bounds, location_bounds, pool_bounds
from cachewarden_policies.policy import Order
from cachewarden_policies.restraint import Freedom
from cachewarden_policies.roster import Roster
from cachewarden_policies.round import Round
from cachewarden_policies.selection import Choice, Need, Selection
from cachewarden_policies.situation import Filesystem, Pool, Situation


@dataclass(frozen=True, slots=True)
class Scope:
    """What shares limits and is ranked together, with the needs that this run tried to meet."""

    name: str
    numbers: list[int]
    order: Order
    needs: list[Need]


@dataclass(frozen=True, slots=True)
class Run:
    """The outcome of one run: who goes, and each scope with what remains of its needs."""

    selection: Selection
    locations: list[Scope]
    pools: list[Scope]
    filesystems: list[Scope]


def compose(
    situation: Situation,
    roster: Roster,
    freedoms: list[Freedom],
    only: dict[int, frozenset[int]] | None = None,
) -> Run:
    """Choose for a whole situation. `freedoms` has one for each of the roster's locations."""
    selection = Selection(roster, freedoms, only)
    numbers = range(len(roster.locations))
    for number in numbers:
        _expire(selection, number)
    expired = len(selection.chosen)
    run = Run(
        selection,
        [_serve_location(selection, number) for number in numbers],
        [_serve_pool(selection, pool) for pool in situation.pools],
        [_serve_filesystem(selection, filesystem) for filesystem in situation.filesystems],
    )
    ranked = list(selection.chosen.items())[expired:]
    if len({choice.scope for _, choice in ranked}) > 1:
        selection.spare(row for row, _ in ranked)
    return run


def _expire(selection: Selection, number: int) -> None:
    roster = selection.roster
    allowed = selection.only.get(number)
    condemned = roster.condemned(number, selection.freedoms[number].expiry)
    choices = {reason: Choice(reason, roster.locations[number].key) for reason in set(condemned.values())}
    for row, reason in condemned.items():
        if allowed is None or row in allowed:
            selection.choose(row, selection.gains(row), choices[reason])


def _serve_location(selection: Selection, number: int) -> Scope:
    location = selection.roster.locations[number]
    gained = selection.gained[number]
    order = location.policy.order
    needs = [Need.of(bound, order, gained[bound.dimension]) for bound in location_bounds(location)]
    scope = Scope(location.key, [number], order, needs)
    _serve(selection, scope, respect_min_size=False)
    return scope


def _serve_pool(selection: Selection, pool: Pool) -> Scope:
    numbers = _present(selection.roster, pool.members)
    members = [selection.roster.locations[number] for number in numbers]
    name = f"pool:{pool.name}"
    bounds = pool_bounds(name, pool.limits, members, selection.usage(numbers)) if numbers else []
    scope = _joint_scope(selection, name, numbers, bounds)
    _serve(selection, scope, respect_min_size=False)
    return scope


def _serve_filesystem(selection: Selection, filesystem: Filesystem) -> Scope:
    numbers = _present(selection.roster, filesystem.members)
    policies = [selection.roster.locations[number].policy for number in numbers]
    gained = [selection.gained[number] for number in numbers]
    bounds = floor_bounds(
        filesystem,
        policies,
        freed_bytes=sum(gain[Dimension.DISK_BYTES] for gain in gained),
        freed_inodes=sum(gain[Dimension.DISK_INODES] for gain in gained),
    )
    scope = _joint_scope(selection, f"filesystem:{filesystem.name}", numbers, bounds)
    if not filesystem.futile:
        _serve(selection, scope, respect_min_size=True)
    return scope


def _joint_scope(selection: Selection, name: str, numbers: list[int], bounds: list[Bound]) -> Scope:
    order = selection.roster.order_of(numbers)
    return Scope(name, numbers, order, [Need.of(bound, order) for bound in bounds])


def _present(roster: Roster, members: tuple[str, ...]) -> list[int]:
    """Numbers of the members that this situation knows; one that is unavailable takes no part."""
    return sorted({roster.number[key] for key in members if key in roster.number})


def _serve(selection: Selection, scope: Scope, *, respect_min_size: bool) -> None:
    """Choose for one scope: the soft needs from unguarded rows, then what hard needs still ask for."""
    roster = selection.roster
    selection.watch(scope.numbers, scope.needs)
    taken: list[int] = []
    for hard in (False, True):
        needs = [need for need in scope.needs if need.bound.hard is hard]
        round_ = Round(selection, scope.name, needs, respect_min_size=respect_min_size)
        numbers = [n for n in scope.numbers if _may_act(selection.freedoms[n], scope.order, hard=hard)]
        if round_.unmet:
            round_.walk(roster.free(numbers, scope.order))
        if round_.unmet and hard:
            round_.walk(roster.soft(numbers, scope.order))
        taken += round_.taken
    selection.spare(taken)


def _may_act(freedom: Freedom, order: Order, *, hard: bool) -> bool:
    return freedom.hard if hard else order in freedom.soft
