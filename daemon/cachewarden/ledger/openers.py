"""Live openers on record, so that a restart of the service forgets nobody."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from cachewarden.ledger.pending import Change, Key, Kind, Row
from cachewarden.ledger.store import Store
from cachewarden.ledger.uses import Batch, record_uses
from cachewarden.ledger.values import Opener, Passing, Use
from cachewarden_policies.reasons import LastUseSource

# Location's key, entry, pid, start of the process in clock ticks since the boot, time of its last open in
# nanoseconds since the boot, name of the process. In a removal the last two mean nothing.
OpenerRow = tuple[str, bytes, int, int, int, bytes]
# Nanoseconds since the epoch, pid, name and user of the process; see `values.Opener`.
UseRow = tuple[int, int | None, bytes, int | None]
PassingRow = tuple[int, int, int]  # see `values.Passing`


class OpenerRows:
    """Rows of one boot of the machine at a time. Safe to use from several threads; raises nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cleaned = False

    def load(self, boot_id: str, location: str | None = None) -> Iterator[OpenerRow]:
        """All rows of this boot, or those of one location."""
        sql, values = "SELECT * FROM openers WHERE boot_id = ?", [boot_id]
        if location is not None:
            sql, values = f"{sql} AND location = ?", [boot_id, location]
        for row in self._store.read(sql, values, table="openers"):
            if row["boot_id"] == boot_id and location in (None, row["location"]):
                yield cast("OpenerRow", tuple(row[name] for name in _COLUMNS))

    def save(self, boot_id: str, put: Sequence[OpenerRow], drop: Sequence[OpenerRow], now_ns: int) -> None:
        """Write and remove rows of this boot; whatever is left of others goes."""
        changes: dict[tuple[str, Key], Change] = {}
        with self._store.lock:
            if not self._cleaned:
                for row in self._store.read("SELECT * FROM openers", table="openers"):
                    if row["boot_id"] != boot_id:
                        key = tuple(row[name] for name in ("boot_id", *_COLUMNS[:4]))
                        changes["openers", key] = Change(Kind.DROP, {})
                self._cleaned = True
            for each in drop:
                changes["openers", (boot_id, *each[:4])] = Change(Kind.DROP, {})
            for each in put:
                columns: Row = {"opened_ns": each[4], "comm": each[5]}
                changes["openers", (boot_id, *each[:4])] = Change(Kind.PUT, columns)
            self._store.write(changes, now_ns)

    def save_uses(
        self,
        key: str,
        seen_by: str,
        uses: Mapping[bytes, UseRow],
        passed: Mapping[bytes, PassingRow],
        now_ns: int,
    ) -> None:
        """Write opens of a location's entries, between passes. What is no entry any more is left out."""
        made = {
            name: Use(ns, LastUseSource.OPENS, Opener(pid, comm, uid), seen_by)
            for name, (ns, pid, comm, uid) in uses.items()
        }
        batch = Batch(made, {name: Passing(*row) for name, row in passed.items()})
        record_uses(self._store, key, batch, now_ns, appeared=None)


_COLUMNS = ("location", "entry", "pid", "start_ticks", "opened_ns", "comm")
