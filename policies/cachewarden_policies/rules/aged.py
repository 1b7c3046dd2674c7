"""`max_age`: what is older than that goes, however often it is used."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cachewarden_policies.ordering import born_ns
from cachewarden_policies.reasons import EvictReason
from cachewarden_policies.situation import Entry


@dataclass(frozen=True, slots=True)
class Aged:
    """Age counts from the latest of first seen and the last change, in nanoseconds."""

    max_age: int
    reason: ClassVar[EvictReason] = EvictReason.AGED

    def __call__(self, entries: Sequence[Entry], now_ns: int) -> Iterable[int]:
        """Entries older than `max_age`; exactly as old is not older."""
        before = now_ns - self.max_age
        # First seen alone rules out nearly all young entries, and is the cheaper look.
        return [i for i, e in enumerate(entries) if e.first_seen_ns < before and born_ns(e, now_ns) < before]
