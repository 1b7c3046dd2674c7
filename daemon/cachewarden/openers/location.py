"""What is asked about one location; `evict.LiveOpeners` has the shape of `OpenersOf`."""

import os
from typing import Protocol

from cachewarden.openers.book import Book
from cachewarden.openers.processes import alive
from cachewarden.report import Holder


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


def holders(book: Book | None, entry: bytes, boot_ns: int) -> tuple[Holder, ...]:
    """An entry's live openers, for people; `boot_ns` counts from the boot."""
    opened = book.of(entry, boot_ns, alive) if book is not None else ()
    return tuple(Holder("opener", each.process.pid or None, os.fsdecode(each.comm)) for each in opened)
