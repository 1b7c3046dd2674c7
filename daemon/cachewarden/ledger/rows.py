"""Between the ledger's rows and the values that stand for them."""

from collections.abc import Mapping
from typing import Any, cast

from cachewarden.ledger.pending import Change, Kind, Row, Value
from cachewarden.ledger.values import (
    FOREVER,
    EvictionRow,
    LocationState,
    Opener,
    Passing,
    Record,
    Use,
)
from cachewarden.spec import LocationSpec
from cachewarden_policies.reasons import LastUseSource, Outcome

_PASSING = ("passed_ns", "passed_until_ns", "passed_atime_ns")
_FLAGS = ("available", "usage_complete", "inuse_complete")


def put(record: Record) -> Change:
    """An entry's whole row: one that was dropped before must not leave its last use behind."""
    columns: Row = {
        "first_seen_ns": record.first_seen_ns,
        "appeared": record.appeared,
        "bytes": record.bytes,
        "last_use_ns": record.last_use_ns,
        "last_use_source": record.last_use_source and str(record.last_use_source),
    }
    columns |= _who(record.opener, record.seen_by) | passed(record.passing)
    return Change(Kind.PUT, columns)


def used(use: Use) -> Row:
    """The columns of an entry's last use; what was known of an earlier one goes."""
    columns: Row = {"last_use_ns": use.ns, "last_use_source": str(use.source)}
    return columns | _who(use.opener, use.seen_by)


def _who(opener: Opener | None, seen_by: str | None) -> Row:
    pid, name, uid = opener if opener is not None else (None, None, None)
    return {"opener_pid": pid, "opener_name": name, "opener_uid": uid, "seen_by": seen_by}


def passed(passing: Passing | None) -> Row:
    """The columns of a passing."""
    return dict(zip(_PASSING, passing if passing is not None else (None, None, None), strict=True))


def located(location: LocationSpec, changes: Mapping[str, object]) -> Change:
    """A location's row with these columns changed, made if it is missing."""
    columns: Row = {"name": location.name, "path": location.path}
    for column, value in changes.items():
        if isinstance(value, Outcome):
            columns[column] = str(value)
        else:
            columns[column] = min(value, FOREVER) if isinstance(value, int) else cast("Value", value)
    return Change(Kind.PUT, columns)


def evicted(row: EvictionRow) -> Change:
    """A row of the history."""
    columns: Row = {
        "time_ns": row.time_ns,
        "location": row.location,
        "name": row.name,
        "path": row.path,
        "entry": row.entry,
        "bytes": row.bytes,
        "freed_bytes": row.freed_bytes,
        "reason": str(row.reason),
        "outcome": row.outcome,
        "last_use_ns": None if row.last_use_ns is None else min(row.last_use_ns, FOREVER),
        "last_use_source": row.last_use_source and str(row.last_use_source),
        "owner": row.owner,
        "refetched_ns": None,
    }
    return Change(Kind.PUT, columns)


def record(row: Row) -> Record:
    """What is remembered of an entry."""
    known: dict[str, Any] = dict(row)
    # A full disk may keep an older ledger from being migrated, and then it is read as it is.
    name = known.get("opener_name")  # empty and not NULL where only a pid is known
    ns, until_ns, atime_ns = (known.get(column) for column in _PASSING)
    return Record(
        known["first_seen_ns"],
        bool(known["appeared"]),
        known["bytes"],
        known["last_use_ns"],
        _source(known["last_use_source"]),
        None if name is None else Opener(known["opener_pid"], name, known["opener_uid"]),
        known.get("seen_by"),
        None if ns is None or until_ns is None or atime_ns is None else Passing(ns, until_ns, atime_ns),
    )


def state(row: Row) -> LocationState:
    """What is remembered of a location. A row that is still on its way has only some columns."""
    known: dict[str, Any] = {name: row.get(name) for name in LocationState.__dataclass_fields__}
    outcome = known["outcome"]
    known["outcome"] = _OUTCOMES.get(outcome)
    for flag in _FLAGS:
        known[flag] = None if known[flag] is None else bool(known[flag])
    return LocationState(**known)


def eviction(row: Row) -> EvictionRow:
    """A row of the history, back. In a ledger that could not be migrated, columns are missing."""
    known: dict[str, Any] = {name: row[name] for name in EvictionRow.__dataclass_fields__ if name in row}
    known["last_use_source"] = _source(known["last_use_source"])
    return EvictionRow(**known)


# What only a newer version knows is as good as unknown.
_OUTCOMES = {str(outcome): outcome for outcome in Outcome}
_SOURCES = {str(source): source for source in LastUseSource}


def _source(value: Value) -> LastUseSource | None:
    return _SOURCES.get(value) if isinstance(value, str) else None
