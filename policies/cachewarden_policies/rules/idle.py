"""`max_idle`: what nobody used for longer than that goes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cachewarden_policies.reasons import EvictReason
from cachewarden_policies.situation import Entry


@dataclass(frozen=True, slots=True)
class Idle:
    """`max_idle` is in nanoseconds. A last use in the future is not idle."""

    max_idle: int
    reason: ClassVar[EvictReason] = EvictReason.IDLE

    def __call__(self, entries: Sequence[Entry], now_ns: int) -> Iterable[int]:
        """Entries unused for more than `max_idle`; exactly as long is not more."""
        before = now_ns - self.max_idle
        return [i for i, e in enumerate(entries) if e.last_use_ns < before]
