"""`min_idle`: what was used a moment ago will be used again in a moment."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cachewarden_policies.reasons import KeepReason
from cachewarden_policies.situation import Entry


@dataclass(frozen=True, slots=True)
class MinIdle:
    """`min_idle` is in nanoseconds. A last use in the future counts as now."""

    min_idle: int
    reason: ClassVar[KeepReason] = KeepReason.MIN_IDLE

    def __call__(self, entries: Sequence[Entry], now_ns: int) -> Iterable[int]:
        """Entries used less than `min_idle` ago."""
        after = now_ns - self.min_idle
        return [i for i, e in enumerate(entries) if e.last_use_ns > after]
