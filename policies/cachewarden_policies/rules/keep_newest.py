"""`keep_newest`: the entries that were used last stay, however long ago that was."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import ClassVar

from cachewarden_policies.reasons import KeepReason
from cachewarden_policies.situation import Entry


@dataclass(frozen=True, slots=True)
class KeepNewest:
    """The `count` most recently used entries of the location, guarded ones among them."""

    count: int
    reason: ClassVar[KeepReason] = KeepReason.KEEP_NEWEST

    def __call__(self, entries: Sequence[Entry], now_ns: int) -> Iterable[int]:
        """Ties as in every ranking: the later change, then the greater name counts as newer."""

        def recency(index: int) -> tuple[int, int, bytes]:
            entry = entries[index]
            return min(entry.last_use_ns, now_ns), min(entry.changed_ns, now_ns), entry.name

        return nlargest(self.count, range(len(entries)), key=recency)
