"""What eviction asks about one location; `evict.LiveOpeners` has this shape."""

from typing import Protocol


class Source(Protocol):
    """Knows live openers of many locations."""

    def drain(self, key: str | None = None) -> None:
        """Take in all that is known up to now."""

    def holds(self, key: str, entry: bytes) -> bool:
        """Whether a living process opened this entry, or whether that is unknown."""


class OpenersOf:
    """The live openers of one location."""

    def __init__(self, source: Source, key: str) -> None:
        self._source = source
        self._key = key

    def drain(self) -> None:
        """Take in all that is known up to now."""
        self._source.drain(self._key)

    def holds(self, entry: bytes) -> bool:
        """Whether a living process opened this entry (by name), or whether that is unknown."""
        return self._source.holds(self._key, entry)
