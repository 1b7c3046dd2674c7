"""The two shapes of a rule. Both get a location's entries and the time, and return indices."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol

from cachewarden_policies.reasons import EvictReason, KeepReason
from cachewarden_policies.situation import Entry


class Guard(Protocol):
    """Says which entries stay. `now_ns` is in nanoseconds since the epoch."""

    reason: ClassVar[KeepReason]

    def __call__(self, entries: Sequence[Entry], now_ns: int) -> Iterable[int]:
        """Indices of the guarded entries, each once, in any order."""


class Condemnation(Protocol):
    """Says which entries go whatever the usage."""

    reason: ClassVar[EvictReason]

    def __call__(self, entries: Sequence[Entry], now_ns: int) -> Iterable[int]:
        """Indices of the condemned entries, each once, in any order."""
