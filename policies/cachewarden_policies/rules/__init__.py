"""The rulebook: the only place that builds rules from a policy. No rule means nothing is removed.

A rule is a small value that is called with a location's entries and the time, and returns the
indices of the entries that it speaks about; its `reason` goes on the verdict. Rules see whole
locations and not single entries, because a call for each of a million entries costs more than all
of the deciding.
"""

from cachewarden_policies.policy import Policy
from cachewarden_policies.rules.aged import Aged
from cachewarden_policies.rules.idle import Idle
from cachewarden_policies.rules.keep_newest import KeepNewest
from cachewarden_policies.rules.min_idle import MinIdle
from cachewarden_policies.rules.partial import AbandonedPartial, FreshPartial
from cachewarden_policies.rules.protect import Protect
from cachewarden_policies.rules.rule import Condemnation, Guard
from cachewarden_policies.rules.stale import Stale

__all__ = ["USELESS", "Condemnation", "Guard", "condemnations", "hard_guards", "soft_guards"]

# Reasons of what nobody can use, however young it is.
USELESS = frozenset({AbandonedPartial.reason, Stale.reason})


def hard_guards(policy: Policy) -> list[Guard]:
    """Guards that never yield, in the order in which their reasons win (after the daemon's veto)."""
    guards: list[Guard] = []
    if policy.protect:
        guards.append(Protect.of(policy.protect))
    if policy.partial_max_idle is not None:
        guards.append(FreshPartial(policy.partial_max_idle))
    return guards


def soft_guards(policy: Policy) -> list[Guard]:
    """Guards that yield above a hard limit, in the order in which their reasons win."""
    guards: list[Guard] = []
    if policy.min_idle > 0:
        guards.append(MinIdle(policy.min_idle))
    if policy.keep_newest > 0:
        guards.append(KeepNewest(policy.keep_newest))
    return guards


def condemnations(policy: Policy) -> list[Condemnation]:
    """Rules that condemn whatever the usage, in the order in which their reasons win.

    A policy that limits nothing has none: not even stale entries and abandoned downloads go then,
    because an administrator who set no limit did not ask for anything to be removed.
    """
    rules: list[Condemnation] = []
    if not _limits_anything(policy):
        return rules
    if policy.partial_max_idle is not None:
        rules.append(AbandonedPartial(policy.partial_max_idle))
    rules.append(Stale())
    if policy.max_idle is not None:
        rules.append(Idle(policy.max_idle))
    if policy.max_age is not None:
        rules.append(Aged(policy.max_age))
    return rules


def _limits_anything(policy: Policy) -> bool:
    limits, floor = policy.limits, policy.floor
    wishes = (
        limits.max_size,
        limits.hard_max_size,
        limits.max_files,
        limits.max_entries,
        floor.min_free,
        floor.hard_min_free,
        floor.min_free_files,
        policy.max_idle,
        policy.max_age,
    )
    return policy.evict_all or any(wish is not None for wish in wishes)
