"""The ledger: what must survive a restart, in the words of passes and commands."""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self, Unpack, cast

from cachewarden.ledger import rows
from cachewarden.ledger.ahead import bring_back
from cachewarden.ledger.intents import Intents, ending
from cachewarden.ledger.known import KnownRecords
from cachewarden.ledger.openers import OpenerRows
from cachewarden.ledger.pending import Change, Key, Kind
from cachewarden.ledger.schema import STEPS, Step
from cachewarden.ledger.store import Store
from cachewarden.ledger.uses import Batch, known_of, record_uses
from cachewarden.ledger.values import (
    FOREVER,
    EvictionRow,
    LocationChanges,
    LocationState,
    Passing,
    Record,
    Seen,
    Use,
)
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import DAY

REFETCH_WINDOW = 7 * DAY
HISTORY_ROWS = 100_000
HISTORY_AGE = 400 * DAY

# The rows of pauses: this one holds for all locations, `*NAME` for those of a configured name. Both hold for
# locations that appear later, too. No location has such a key, because no name may begin with a star.
EVERYWHERE = "*"


class Ledger:
    """Everything that is remembered, safe to use from several threads and processes at once.

    Nothing here raises because of a full, read-only or damaged disk (see `trouble`): eviction must
    go on then. Times are arguments.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.intents = Intents(store)
        self.openers = OpenerRows(store)
        self._known = KnownRecords(store)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what waits, if that is possible, and let go of the file."""
        self._store.close()

    @property
    def trouble(self) -> str | None:
        """Why the disk does not take or give what it should, or None."""
        return self._store.trouble

    @property
    def pending(self) -> int:
        """How many rows wait in memory for the disk."""
        return self._store.pending

    def flush(self, now_ns: int) -> bool:
        """Try again to write what waits; whether all is on the disk then."""
        self._store.write({}, now_ns)
        return not self._store.pending

    @property
    def failed_writes(self) -> int:
        """How many writes had to be put off since the ledger was opened."""
        return self._store.failed_writes

    def take_notices(self) -> list[str]:
        """Sentences for the log, each given out once: damage, migration, trouble and its end."""
        return self._store.take_notices()

    def records(self, key: str) -> Mapping[bytes, Record]:
        """What is remembered of a location's entries, by name; the same object while nothing changed."""
        return self._known.of(key)

    def seen(
        self,
        location: LocationSpec,
        entries: Iterable[tuple[bytes, int]],
        now_ns: int,
        *,
        complete: bool = True,
        formerly: Mapping[bytes, bytes] | None = None,
    ) -> Seen:
        """Take over what a scan found, as (name, bytes), and say what is remembered of each.

        `formerly` has the names that entries may have had before; a new entry inherits the record.

        Entries that are not there any more are forgotten, unless the scan was not `complete`. The
        first scan of a location makes all it finds "there before us"; what comes later appeared.
        """
        key = location.key
        with self._store.lock:
            state = self.location_state(key)
            first = state is None or state.first_scan_ns is None
            before, names = self.records(key), formerly or {}
            known = dict(before)
            changes: dict[tuple[str, Key], Change] = {}
            records: dict[bytes, Record] = {}
            new: dict[bytes, int] = {}
            for name, size in entries:
                record = known.pop(name, None)
                if record is None and (old := before.get(names.get(name, b""))) is not None:
                    record = replace(old, bytes=size)
                    changes["entries", (key, name)] = rows.put(record)
                elif record is None:
                    new[name] = size
                    record = Record(now_ns, not first, size)
                    changes["entries", (key, name)] = rows.put(record)
                elif record.bytes != size:
                    record = replace(record, bytes=size)
                    changes["entries", (key, name)] = Change(Kind.AMEND, {"bytes": size})
                records[name] = record
            if complete:
                changes |= {("entries", (key, name)): Change(Kind.DROP, {}) for name in known}
            refetched, marks = self._refetched(key, new, now_ns)
            changes |= marks
            if first:
                changes["locations", (key,)] = rows.located(location, {"first_scan_ns": now_ns})
            self._store.write(changes, now_ns)
        same = not known and not any(table == "entries" for table, _ in changes)
        return Seen(before if same else records, refetched)

    def _refetched(
        self, key: str, new: Mapping[bytes, int], now_ns: int
    ) -> tuple[tuple[tuple[bytes, int], ...], dict[tuple[str, Key], Change]]:
        if not new:
            return (), {}
        since = now_ns - REFETCH_WINDOW
        found = self._store.read(
            "SELECT * FROM evictions WHERE location = ? AND time_ns >= ? AND refetched_ns IS NULL",
            (key, since),
            table="evictions",
        )
        back: set[bytes] = set()
        marks: dict[tuple[str, Key], Change] = {}
        for row in found:
            name, time = cast("bytes", row["entry"]), cast("int", row["time_ns"])
            if row["location"] == key and time >= since and row["refetched_ns"] is None and name in new:
                # Counted once, though it may have been evicted several times in these days.
                marks["evictions", (row["id"],)] = Change(Kind.AMEND, {"refetched_ns": now_ns})
                if row["outcome"] == "removed":
                    back.add(name)
        return tuple((name, new[name]) for name in sorted(back)), marks

    def record(self, key: str, name: bytes) -> Record | None:
        """What is remembered of one entry, or None."""
        return known_of(self._store, key, (name,)).get(name)

    def record_use(
        self,
        location: LocationSpec,
        uses: Mapping[bytes, Use],
        now_ns: int,
        passed: Mapping[bytes, Passing] | None = None,
    ) -> None:
        """Remember uses, in batches; an older one than what is remembered changes nothing.

        For what cannot be seen again later. A use of an entry that no scan found yet makes its record, so
        that the use is not lost. `passed` are those by programs that do not count.
        """
        with self._store.lock:
            state = self.location_state(location.key)
            appeared = state is not None and state.first_scan_ns is not None
            record_uses(self._store, location.key, Batch(uses, passed or {}), now_ns, appeared=appeared)

    def bring_back(self, key: str, now_ns: int) -> int:
        """Let times of a location that lie more than a day ahead be now; how many rows that were.

        Only while nobody doubts the clock. See `ahead`.
        """
        return bring_back(self._store, key, now_ns)

    def record_evictions(
        self, evictions: Sequence[EvictionRow], now_ns: int, settled: Collection[int] = ()
    ) -> None:
        """Add to the history, oldest first. What was removed or is gone is no entry any more.

        `settled` are the ids of intents that have their outcome now, in the same transaction.
        """
        changes = ending(settled)
        for row in evictions:
            changes["evictions", (secrets.randbits(62),)] = rows.evicted(row)
            if row.outcome in ("removed", "gone"):
                # If it comes back before the next scan, it is a new entry and not the old one.
                changes["entries", (row.location, row.entry)] = Change(Kind.DROP, {})
        self._store.write(changes, now_ns)

    def history(self, limit: int = 1000, location: str | None = None) -> list[EvictionRow]:
        """The newest evictions first, of all locations or of those with this configured name."""
        where = "" if location is None else "WHERE name = ?"
        found = self._store.read(
            f"SELECT * FROM (SELECT rowid AS place, * FROM evictions {where}"  # noqa: S608
            " ORDER BY time_ns DESC, place DESC LIMIT ?) ORDER BY time_ns, place",
            (limit,) if location is None else (location, limit),
            table="evictions",
        )
        fitting = [row for row in found if location in (None, row["name"])]
        fitting.sort(key=lambda row: cast("int", row["time_ns"]))  # pending ones are last, and may be older
        return [rows.eviction(row) for row in reversed(fitting)][:limit]

    def prune(self, now_ns: int, *, keep: int = HISTORY_ROWS, age: int = HISTORY_AGE) -> None:
        """Drop evictions that are older than `age` or not among the newest `keep`. Once a day is enough."""
        found = self._store.read(
            "SELECT id, time_ns FROM evictions WHERE time_ns < ? OR rowid IN"
            " (SELECT rowid FROM evictions ORDER BY time_ns DESC, rowid DESC LIMIT -1 OFFSET ?)",
            (now_ns - age, keep),
            table="evictions",
        )
        # Pending rows have all columns: they are new, and waiting for the disk; they stay.
        drop: dict[tuple[str, Key], Change] = {
            ("evictions", (row["id"],)): Change(Kind.DROP, {}) for row in found if "entry" not in row
        }
        self._store.write(drop, now_ns)

    def location_states(self) -> dict[str, LocationState]:
        """What is remembered of every location that was ever looked at, by key."""
        found = self._store.read("SELECT * FROM locations", table="locations")
        states = (rows.state(row) for row in found if not cast("str", row["key"]).startswith(EVERYWHERE))
        return {state.key: state for state in states}

    def location_state(self, key: str) -> LocationState | None:
        """What is remembered of one location, or None."""
        found = self._store.read("SELECT * FROM locations WHERE key = ?", (key,), table="locations")
        return next((rows.state(row) for row in found if row["key"] == key), None)

    def update_location(
        self, location: LocationSpec, now_ns: int, **changes: Unpack[LocationChanges]
    ) -> None:
        """Change what is remembered of a location; what is not named stays as it is."""
        self._store.write({("locations", (location.key,)): rows.located(location, dict(changes))}, now_ns)

    def confirm(self, location: LocationSpec, until_ns: int, now_ns: int) -> None:
        """`max_share` does not hold the location back until then."""
        self.update_location(location, now_ns, confirmed_until_ns=until_ns)

    def pause(self, name: str | None, now_ns: int, until_ns: int = FOREVER) -> None:
        """Nothing is evicted from the locations of a name (None: from any) until then, or until `resume`.

        By name and not by path: what a glob matches later is paused as well.
        """
        self._store.write({_pause(name): _paused(name, min(until_ns, FOREVER))}, now_ns)

    def resume(self, name: str | None, now_ns: int) -> None:
        """Take the pause of a name back. None takes back all of them, those of single names too."""
        found = self._store.read("SELECT * FROM locations", table="locations")
        changes: dict[tuple[str, Key], Change] = {
            ("locations", (row["key"],)): Change(Kind.AMEND, {"paused_until_ns": None})
            for row in found
            if row.get("paused_until_ns") is not None and name in (None, row.get("name"))
        }
        self._store.write({**changes, _pause(name): _paused(name, None)}, now_ns)

    def paused_until(self, location: LocationSpec, now_ns: int) -> int | None:
        """Until when the location is paused, by itself, by its name or with all others; None: it is not."""
        keys = (location.key, EVERYWHERE + location.name, EVERYWHERE)
        states = [self.location_state(key) for key in keys]
        ends = [state.paused_until_ns for state in states if state is not None and state.paused(now_ns)]
        return max((end for end in ends if end is not None), default=None)


def _pause(name: str | None) -> tuple[str, Key]:
    return "locations", (EVERYWHERE + (name or ""),)


def _paused(name: str | None, until_ns: int | None) -> Change:
    return Change(Kind.PUT, {"name": name or EVERYWHERE, "path": b"", "paused_until_ns": until_ns})


def open_ledger(
    state_dir: bytes, now_ns: int, *, read_only: bool = False, steps: Sequence[Step] = STEPS
) -> Ledger:
    """The ledger in `state_dir`, made, migrated or set aside and made anew as needed.

    With `read_only` nothing is created or changed, and a missing ledger remembers nothing. Raises
    LedgerTooNewError. Look at `take_notices()` after it.
    """
    return Ledger(Store(state_dir, now_ns, read_only=read_only, steps=steps))
