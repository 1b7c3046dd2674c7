"""`partial_max_idle`: a partial download may still run until then, and is abandoned after it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cachewarden_policies.reasons import EvictReason, KeepReason
from cachewarden_policies.situation import Entry


@dataclass(frozen=True, slots=True)
class FreshPartial:
    """Guards partial downloads that something may still be writing. Nanoseconds."""

    partial_max_idle: int
    reason: ClassVar[KeepReason] = KeepReason.PARTIAL

    def __call__(self, entries: Sequence[Entry], now_ns: int) -> Iterable[int]:
        """Partial entries idle for at most `partial_max_idle`."""
        before = now_ns - self.partial_max_idle
        return [i for i, e in enumerate(entries) if e.partial and e.last_use_ns >= before]


@dataclass(frozen=True, slots=True)
class AbandonedPartial:
    """Condemns partial downloads that nobody goes on with. Nanoseconds."""

    partial_max_idle: int
    reason: ClassVar[EvictReason] = EvictReason.PARTIAL

    def __call__(self, entries: Sequence[Entry], now_ns: int) -> Iterable[int]:
        """Partial entries idle for more than `partial_max_idle`."""
        before = now_ns - self.partial_max_idle
        return [i for i, e in enumerate(entries) if e.partial and e.last_use_ns < before]
