"""The records of a location's entries as they were read last, so that a pass need not read them all again.

Twenty thousand rows cost half a second of CPU, and from one pass to the next hardly any of them changes. Rows
that this process changed are read again one by one; when another process wrote anything, all of them are.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from cachewarden.ledger import rows
from cachewarden.ledger.pending import Changes
from cachewarden.ledger.store import Store
from cachewarden.ledger.uses import known_of
from cachewarden.ledger.values import Record

# With more rows changed than that, reading all of them is no dearer.
_MOST = 1000


@dataclass(frozen=True, slots=True)
class _Read:
    version: tuple[int, int]
    records: Mapping[bytes, Record]


class KnownRecords:
    """What `entries` says of each location. Thread-safe by the store's lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[str, _Read] = {}
        self._changed: defaultdict[str, set[bytes]] = defaultdict(set)
        store.on_write = self._on_write

    def of(self, key: str) -> Mapping[bytes, Record]:
        """The records of a location, by name; the same object for as long as nothing in it changed."""
        with self._store.lock:
            version = self._store.version()  # first: what is written meanwhile makes another one
            last = self._read.get(key)
            changed = self._changed.pop(key, set())
            if version is None:
                self._read.pop(key, None)
                return self._all(key)
            if last is None or last.version != version or len(changed) > _MOST:
                last = _Read(version, self._all(key))
            elif changed:
                kept = {name: record for name, record in last.records.items() if name not in changed}
                last = _Read(version, kept | known_of(self._store, key, changed))
            self._read[key] = last
            return last.records

    def _all(self, key: str) -> Mapping[bytes, Record]:
        found = self._store.read("SELECT * FROM entries WHERE location = ?", (key,), table="entries")
        return {cast("bytes", row["name"]): rows.record(row) for row in found if row["location"] == key}

    def _on_write(self, changes: Changes) -> None:
        for table, key in changes:
            if table == "entries":
                self._changed[cast("str", key[0])].add(cast("bytes", key[1]))
