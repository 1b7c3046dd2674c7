"""What a location's circumstances hold back in this pass, and the reason that its entries get.

Held back is not guarded: a guard speaks about one entry, a restraint about what the whole location
may do now. The planner asks what would go without restraints, and those entries carry the reason.
"""

from dataclasses import dataclass

from cachewarden_policies.reasons import EvictReason, KeepReason
from cachewarden_policies.situation import Circumstances

EXPIRY = frozenset({EvictReason.PARTIAL, EvictReason.IDLE, EvictReason.AGED, EvictReason.STALE})
_BY_THE_CLOCK = frozenset({EvictReason.PARTIAL, EvictReason.IDLE, EvictReason.AGED})


@dataclass(frozen=True, slots=True)
class Freedom:
    """What may act on a location: expiry rules by their reasons, soft limits, hard limits."""

    expiry: frozenset[EvictReason]
    soft: bool
    hard: bool


FULL = Freedom(EXPIRY, soft=True, hard=True)
NONE = Freedom(frozenset(), soft=False, hard=False)


def freedom_of(circumstances: Circumstances) -> Freedom:
    """What may act now. `max_share` is not in it: the brake needs the chosen victims."""
    c = circumstances
    if not c.enforce or (c.waiting and not c.confirmed):
        return NONE
    expiry = EXPIRY
    if c.clock_suspect:
        expiry -= _BY_THE_CLOCK
    if c.learning:
        expiry -= {EvictReason.IDLE}
    if c.quiet:
        expiry = frozenset()
    ranked = not (c.quiet or c.learning)
    return Freedom(expiry, soft=ranked, hard=True)


def hold_reason(circumstances: Circumstances, wanted: EvictReason) -> KeepReason:
    """Why an entry that would go for `wanted` stays; WITHIN_LIMITS when nothing holds it back."""
    c = circumstances
    if not c.enforce:
        return KeepReason.NOT_ENFORCED
    if c.waiting and not c.confirmed:
        return KeepReason.CONFIRMATION
    if c.clock_suspect and wanted in _BY_THE_CLOCK:
        return KeepReason.CLOCK
    if c.learning and (wanted is EvictReason.IDLE or wanted not in EXPIRY):
        return KeepReason.LEARNING
    return KeepReason.QUIET_HOURS if c.quiet else KeepReason.WITHIN_LIMITS
