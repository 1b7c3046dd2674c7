"""`make_plan`: from a situation to a plan. The one entry point of this package.

A plan is made in runs. Where circumstances hold a location back, a first run without any restraint
finds what would go, so that those entries can say why they stay. Then come the runs that count: when
`max_share` cuts a location, it is closed to what may still go, and the others choose again, as a
location that waits for a person must not leave a disk to run full.
"""

from cachewarden_policies.brake import allowed_by_brake
from cachewarden_policies.composing import Run, compose
from cachewarden_policies.reasons import KeepReason
from cachewarden_policies.restraint import FULL, freedom_of, hold_reason
from cachewarden_policies.roster import HARD, Roster
from cachewarden_policies.situation import Situation
from cachewarden_policies.summary import Holds, summarise
from cachewarden_policies.verdicts import Plan


def make_plan(situation: Situation) -> Plan:
    """Decide for every entry of every location whether it goes, and why, or stays, and why.

    Pure and total: no clock but `situation.now_ns`, the same plan for any order of the input, exactly
    one verdict for each entry. Raises ValueError for a pattern of `protect` that matches nothing.
    """
    roster = Roster(situation)
    freedoms = [freedom_of(location.circumstances) for location in roster.locations]
    holds = Holds({}, set())
    if any(freedom != FULL for freedom in freedoms):
        _hold_back(compose(situation, roster, [FULL] * len(freedoms)), holds)
    closed: dict[int, frozenset[int]] = {}
    while True:
        run = compose(situation, roster, freedoms, closed)
        cuts = _brake(run, holds, closed)
        if not cuts:
            return summarise(situation, run, holds)
        closed |= cuts


def _hold_back(wish: Run, holds: Holds) -> None:
    """Note for each entry that would go why its location's circumstances keep it."""
    roster = wish.selection.roster
    scopes = [*wish.locations, *wish.pools, *wish.filesystems]
    orders = {scope.name: scope.order for scope in scopes}
    for row, choice in wish.selection.chosen.items():
        circumstances = roster.locations[roster.where[row]].circumstances
        reason = hold_reason(circumstances, choice.reason, orders[choice.scope])
        if reason is KeepReason.WITHIN_LIMITS:
            continue
        holds.reasons[row] = reason
        if circumstances.waiting and not circumstances.confirmed:
            holds.braked.add(roster.where[row])


def _brake(run: Run, holds: Holds, closed: dict[int, frozenset[int]]) -> dict[int, frozenset[int]]:
    """Cut what max_share does not allow; returns the locations to close, with what may still go."""
    roster = run.selection.roster
    victims: dict[int, list[int]] = {}
    for row in run.selection.chosen:
        assert roster.level[row] != HARD
        victims.setdefault(roster.where[row], []).append(row)
    cuts: dict[int, frozenset[int]] = {}
    for number, rows in victims.items():
        allowed = None if number in closed else allowed_by_brake(run.selection, number, rows)
        if allowed is not None:
            cuts[number] = allowed
            holds.braked.add(number)
            holds.reasons.update(dict.fromkeys(rows, KeepReason.CONFIRMATION))
    return cuts
