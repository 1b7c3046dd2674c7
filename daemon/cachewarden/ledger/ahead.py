"""Times on record that lie ahead: they were written while the wall clock was wrong.

Left alone, an entry that was first seen in 2040 would be the youngest of all until then, and no use of it
would be noted, as each is older than the one on record. When it really was is not known any more; that it is
not later than now is, and from here on it ages as everything does.
"""

from cachewarden.ledger.pending import Change, Key, Kind, Row
from cachewarden.ledger.store import Store
from cachewarden_policies.policy import DAY

# Less than that is put right by waiting, and files' stamps are given as much: see `recency.evidence`.
AHEAD_NS = DAY
# So long a program that does not count is given for reading what it opened: `openers.lastuses`.
_PASSING_NS = DAY


def bring_back(store: Store, key: str, now_ns: int) -> int:
    """Let everything about a location that lies more than a day ahead be now; how many rows that were.

    To be called only while nobody doubts the clock: else a clock that is a year behind for a minute would
    make everything a year old.
    """
    limit = now_ns + AHEAD_NS
    with store.lock:
        changes: dict[tuple[str, Key], Change] = {}
        entries = store.read(
            "SELECT * FROM entries WHERE location = ?"
            " AND (first_seen_ns > ? OR last_use_ns > ? OR passed_until_ns > ?)",
            (key, limit, limit, limit + _PASSING_NS),
            table="entries",
        )
        for row in entries:
            late = _late(row, ("first_seen_ns", "last_use_ns"), now_ns)
            until = row.get("passed_until_ns")
            if isinstance(until, int) and until > limit + _PASSING_NS:
                # Or no access time would count until then. Without it, one too many may.
                late |= dict.fromkeys(("passed_ns", "passed_until_ns", "passed_atime_ns"))
            if row["location"] == key and late:
                changes["entries", (key, row["name"])] = Change(Kind.AMEND, late)
        for row in store.read("SELECT * FROM locations WHERE key = ?", (key,), table="locations"):
            late = _late(row, ("first_scan_ns", "over_limit_since_ns", "waiting_since_ns"), now_ns)
            if row["key"] == key and late:
                changes["locations", (key,)] = Change(Kind.AMEND, late)
        if changes:
            store.write(changes, now_ns)
        return len(changes)


def _late(row: Row, columns: tuple[str, ...], now_ns: int) -> Row:
    times = {column: row.get(column) for column in columns}
    return {
        column: now_ns for column, time in times.items() if isinstance(time, int) and time > now_ns + AHEAD_NS
    }
