"""`protect`: names that the administrator never wants to see evicted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cachewarden_policies.globs import Globs, compile_globs
from cachewarden_policies.reasons import KeepReason
from cachewarden_policies.situation import Entry


@dataclass(frozen=True, slots=True)
class Protect:
    """Matches the entry's name or a parent of it. What matches *inside* an entry is the daemon's veto."""

    globs: Globs
    reason: ClassVar[KeepReason] = KeepReason.PROTECTED

    @classmethod
    def of(cls, patterns: tuple[str, ...]) -> "Protect":
        """Build the guard from the configuration's patterns. Raises ValueError for an empty one."""
        return cls(compile_globs(patterns))

    def __call__(self, entries: Sequence[Entry], now_ns: int) -> Iterable[int]:  # noqa: ARG002 - names have no time
        """Entries that a pattern means."""
        matches = self.globs.matches
        return [i for i, e in enumerate(entries) if matches(e.name)]
