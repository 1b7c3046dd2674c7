"""Evictions that have begun: what a killed process leaves here, the next start books."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from cachewarden.ledger import rows
from cachewarden.ledger.pending import Change, Key, Kind, Row
from cachewarden.ledger.store import Store
from cachewarden.ledger.values import EvictionRow


@dataclass(frozen=True, slots=True)
class Intent:
    """An eviction that is about to be tried. `row` is how it will be booked should only this remain.

    `witness` is the path whose presence means "complete" (relative to the location), `ino` its inode.
    """

    row: EvictionRow
    witness: bytes
    ino: int


class Intents:
    """Rows by a random id, so that the end of one can be written with its outcome. Raises nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, intents: Sequence[Intent], now_ns: int) -> list[int]:
        """Note intents; their ids, for `ending`. Nothing is noted while the disk refuses writes.

        Each further try would wait for whoever has the ledger locked, and eviction must not.
        """
        if self._store.trouble is not None:
            return []
        ids = [secrets.randbits(62) for _ in intents]
        changes = {
            ("intents", cast("Key", (number,))): _change(intent)
            for number, intent in zip(ids, intents, strict=True)
        }
        self._store.write(changes, now_ns)
        return ids

    def of(self, location: str) -> dict[int, Intent]:
        """What was begun in a location (by key) and has no outcome."""
        found = self._store.read("SELECT * FROM intents WHERE location = ?", (location,), table="intents")
        return {cast("int", row["id"]): _intent(row) for row in found if row["location"] == location}


def ending(ids: Iterable[int]) -> dict[tuple[str, Key], Change]:
    """The changes that end intents."""
    return {("intents", (number,)): Change(Kind.DROP, {}) for number in ids}


def _change(intent: Intent) -> Change:
    columns: Row = rows.evicted(intent.row).columns
    del columns["outcome"], columns["refetched_ns"]
    return Change(Kind.PUT, columns | {"witness": intent.witness, "ino": intent.ino - _SHIFT})


def _intent(row: Row) -> Intent:
    shifted = cast("int", row["ino"])
    return Intent(
        rows.eviction({**row, "outcome": "removed"}), cast("bytes", row["witness"]), shifted + _SHIFT
    )


# Inode numbers are unsigned and SQLite's integers are not.
_SHIFT = 2**63
