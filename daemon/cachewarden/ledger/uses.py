"""Uses of entries on record: written in batches, by passes and between them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from cachewarden.ledger import rows
from cachewarden.ledger.pending import Change, Key, Kind
from cachewarden.ledger.store import Store
from cachewarden.ledger.values import FOREVER, Passing, Record, Use

# Up to so many entries are asked for one by one: most batches are small, and locations are large.
_FEW = 100


def known_of(store: Store, key: str, names: Collection[bytes]) -> dict[bytes, Record]:
    """The records of some entries of a location, by name; those that there are."""
    where = "location = ?"
    asked: Sequence[Key] = [(key,)]
    if len(names) <= _FEW:
        where, asked = "location = ? AND name = ?", [(key, name) for name in names]
    found: dict[bytes, Record] = {}
    for parameters in asked:
        for row in store.read(f"SELECT * FROM entries WHERE {where}", parameters, table="entries"):  # noqa: S608
            name = cast("bytes", row["name"])
            if row["location"] == key and name in names:
                found[name] = rows.record(row)
    return found


@dataclass(frozen=True, slots=True)
class Batch:
    """Uses and passings of a location's entries, by name."""

    uses: Mapping[bytes, Use]
    passed: Mapping[bytes, Passing]


def record_uses(store: Store, key: str, batch: Batch, now_ns: int, *, appeared: bool | None) -> None:
    """Write what is newer than what is remembered.

    A use of an entry without a record makes one, with this `appeared`. With None it makes none: between
    passes, what has no record was evicted, and is no entry any more.
    """
    with store.lock:
        known = known_of(store, key, batch.uses.keys() | batch.passed.keys())
        changes: dict[tuple[str, Key], Change] = {}
        for name, use in batch.uses.items():
            # Access times beyond the year 2262 exist on ext4 and XFS.
            capped = use._replace(ns=min(use.ns, FOREVER))
            record = known.get(name)
            if record is None and appeared is not None:
                changes["entries", (key, name)] = rows.put(_born(capped, now_ns, appeared=appeared))
            elif record is not None and (record.last_use_ns is None or record.last_use_ns < capped.ns):
                changes["entries", (key, name)] = Change(Kind.AMEND, rows.used(capped))
        for name, passing in batch.passed.items():
            if name in known:
                change = changes.setdefault(("entries", (key, name)), Change(Kind.AMEND, {}))
                change.columns |= rows.passed(_joined(known[name].passing, passing))
        store.write(changes, now_ns)


def _born(use: Use, now_ns: int, *, appeared: bool) -> Record:
    return Record(min(use.ns, now_ns), appeared, 0, use.ns, use.source, use.opener, use.seen_by)


def _joined(known: Passing | None, newer: Passing) -> Passing:
    """A passing that goes on is one with the first: the access time before it may be its own already."""
    if known is None or newer.atime_ns > known.until_ns:
        return newer
    return known._replace(until_ns=max(known.until_ns, newer.until_ns))
