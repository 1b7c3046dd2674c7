"""What a version left behind that is gone: nothing can use it any more."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cachewarden_policies.reasons import EvictReason
from cachewarden_policies.situation import Entry


@dataclass(frozen=True, slots=True)
class Stale:
    """Condemns what its layout called stale; it needs no limit of the policy."""

    reason: ClassVar[EvictReason] = EvictReason.STALE

    def __call__(self, entries: Sequence[Entry], now_ns: int) -> Iterable[int]:  # noqa: ARG002 - judged by the layout
        """Entries marked stale."""
        return [i for i, e in enumerate(entries) if e.stale]
