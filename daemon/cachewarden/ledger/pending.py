"""Changes that are not on the disk yet: what a full disk delays stays here, and reads see it.

Changes to the same row are merged, so that a disk that stays full for a week costs memory for the
rows that there are, and not for every pass.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from cachewarden.ledger.schema import KEYS

Value = int | str | bytes | None
Key = tuple[Value, ...]
Row = dict[str, Value]


class Kind(Enum):
    """How a change meets a row that may exist: insert or update, update only, delete."""

    PUT = "put"
    AMEND = "amend"
    DROP = "drop"


@dataclass(slots=True)
class Change:
    """One row's change; `columns` leaves out the key."""

    kind: Kind
    columns: Row


Changes = Mapping[tuple[str, Key], Change]


class Pending:
    """The merged changes, in the order in which rows were first touched."""

    def __init__(self) -> None:
        self._changes: dict[tuple[str, Key], Change] = {}

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, changes: Changes) -> None:
        """Merge newer changes over the ones that wait."""
        for where, newer in changes.items():
            older = self._changes.get(where)
            if older is None or newer.kind is Kind.DROP or older.kind is Kind.DROP:
                # An amendment of a dropped row has nothing to amend.
                if older is None or newer.kind is not Kind.AMEND:
                    self._changes[where] = Change(newer.kind, dict(newer.columns))
            else:
                kind = Kind.PUT if Kind.PUT in (older.kind, newer.kind) else Kind.AMEND
                self._changes[where] = Change(kind, older.columns | newer.columns)

    def clear(self) -> None:
        """All of it is on the disk."""
        self._changes.clear()

    def over(self, table: str, rows: Iterable[Row]) -> list[Row]:
        """The table's `rows` as they will be once everything is written; new ones come last."""
        waiting = {key: change for (name, key), change in self._changes.items() if name == table}
        if not waiting:
            return list(rows)
        columns = KEYS[table]
        merged: dict[Key, Row] = {tuple(row[column] for column in columns): row for row in rows}
        for key, change in waiting.items():
            if change.kind is Kind.DROP:
                merged.pop(key, None)
            elif key in merged:
                merged[key] = merged[key] | change.columns
            elif change.kind is Kind.PUT:
                merged[key] = dict(zip(columns, key, strict=True)) | change.columns
        return list(merged.values())

    def statements(self) -> Iterator[tuple[str, Sequence[Sequence[Value]]]]:
        """(SQL, parameter rows) for `executemany`, grouped by what the statement looks like."""
        groups: dict[tuple[str, Kind, tuple[str, ...]], list[Sequence[Value]]] = {}
        for (table, key), change in self._changes.items():
            values = tuple(change.columns.values())
            row = (*key, *values) if change.kind is Kind.PUT else (*values, *key)
            groups.setdefault((table, change.kind, tuple(change.columns)), []).append(row)
        for (table, kind, columns), rows in groups.items():
            yield _sql(table, kind, columns), rows


def _sql(table: str, kind: Kind, columns: tuple[str, ...]) -> str:
    # Table and column names come from this package alone; values are always parameters.
    keys = KEYS[table]
    where = " AND ".join(f"{key} = ?" for key in keys)
    if kind is Kind.DROP:
        return f"DELETE FROM {table} WHERE {where}"  # noqa: S608
    if kind is Kind.AMEND:
        return f"UPDATE {table} SET {', '.join(f'{each} = ?' for each in columns)} WHERE {where}"  # noqa: S608
    names = (*keys, *columns)
    update = ", ".join(f"{each} = excluded.{each}" for each in columns)
    marks = ", ".join("?" * len(names))
    return (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608
        f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {update}"
    )
