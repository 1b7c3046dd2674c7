"""What a location's circumstances hold back in this pass, and the reason that its entries get.

Held back is not guarded: a guard speaks about one entry, a restraint about what the whole location
may do now. The planner asks what would go without restraints, and those entries carry the reason.
"""

from dataclasses import dataclass

from cachewarden_policies.policy import Order
from cachewarden_policies.reasons import EvictReason, KeepReason
from cachewarden_policies.situation import Circumstances

EXPIRY = frozenset({EvictReason.PARTIAL, EvictReason.IDLE, EvictReason.AGED, EvictReason.STALE})
_BY_THE_CLOCK = frozenset({EvictReason.PARTIAL, EvictReason.IDLE, EvictReason.AGED})
_ALL_ORDERS = frozenset(Order)
_BY_LAST_USE = frozenset({Order.LRU, Order.CHEAPEST})


@dataclass(frozen=True, slots=True)
class Freedom:
    """What may act on a location: expiry rules by their reasons, soft limits by the order that ranks its
    entries (a pool or a filesystem may rank by another one than the location), hard limits.
    """

    expiry: frozenset[EvictReason]
    soft: frozenset[Order]
    hard: bool


FULL = Freedom(EXPIRY, soft=_ALL_ORDERS, hard=True)
NONE = Freedom(frozenset(), soft=frozenset(), hard=False)


def freedom_of(circumstances: Circumstances) -> Freedom:
    """What may act now. `max_share` is not in it: the brake needs the chosen victims."""
    c = circumstances
    if not c.enforce or (c.waiting and not c.confirmed):
        return NONE
    expiry, soft = EXPIRY, _ALL_ORDERS
    if c.clock_suspect:
        expiry -= _BY_THE_CLOCK
    if c.learning:
        expiry -= {EvictReason.IDLE}
        soft -= _BY_LAST_USE
    if c.quiet:
        expiry, soft = frozenset(), frozenset()
    return Freedom(expiry, soft=soft, hard=True)


def may_prune(circumstances: Circumstances, *, over_hard: bool) -> bool:
    """Whether another tool may prune its cache now, which is over its limit (`over_hard`: the hard one, too).

    It goes by an order of its own: where only our knowledge of last use is in doubt, it may.
    """
    freedom = freedom_of(circumstances)
    return bool(freedom.soft) or (freedom.hard and over_hard)


def hold_reason(circumstances: Circumstances, wanted: EvictReason, order: Order | None) -> KeepReason:
    """Why an entry that would go for `wanted` stays; WITHIN_LIMITS when nothing holds it back.

    `order` is the one that ranked it, where a limit asks for it and no expiry rule.
    """
    c = circumstances
    if not c.enforce:
        return KeepReason.NOT_ENFORCED
    if c.waiting and not c.confirmed:
        return KeepReason.CONFIRMATION
    if c.clock_suspect and wanted in _BY_THE_CLOCK:
        return KeepReason.CLOCK
    if c.learning and (wanted is EvictReason.IDLE or (wanted not in EXPIRY and order in _BY_LAST_USE)):
        return KeepReason.LEARNING
    return KeepReason.QUIET_HOURS if c.quiet else KeepReason.WITHIN_LIMITS
