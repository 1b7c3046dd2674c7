"""The health of the ledger: whole, of which version, how large, when written; and what was set aside."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import NamedTuple

from cachewarden.doctor.finding import Finding, good, moment, note, weaker
from cachewarden.errors import LedgerTooNewError
from cachewarden.ledger.ahead import AHEAD_NS
from cachewarden.ledger.disk import NAME, DamagedError, open_for_reading
from cachewarden.ledger.schema import STEPS
from cachewarden.paths import show
from cachewarden.units import format_size

_WHOLE = "ok"
# `files.set_aside` and `disk._bring_up` give these names, to ledgers and to pins.
_DAMAGED, _BACKUP = b".damaged-", b".backup"
_LOG_FILES = (b"-wal", b"-shm")


class _Content(NamedTuple):
    verdict: str
    version: int
    entries: int
    locations: int
    ahead: int  # entries whose times on record lie ahead


def ledger_finding(state_dir: bytes, now_ns: int) -> Finding:
    """The ledger, read to its last page and not changed. Raises nothing."""
    try:
        connection = open_for_reading(state_dir, STEPS)
        if connection is None:
            return note("ledger", "there is none yet")
        with closing(connection):
            found = _content(connection, now_ns + AHEAD_NS)
    except LedgerTooNewError as error:
        return weaker("ledger", str(error), "install the newer version")
    except DamagedError as error:
        return _damaged(str(error))
    except (OSError, sqlite3.Error) as error:
        return weaker("ledger", f"it cannot be read: {error}", "see to the disk and to its owner and mode")
    return _judged(found, os.path.join(state_dir, NAME))


def _content(connection: sqlite3.Connection, limit_ns: int) -> _Content:
    # Whole pages first: what a damaged one says counts for nothing.
    verdict = str(connection.execute("PRAGMA integrity_check(1)").fetchone()["integrity_check"])
    if verdict != _WHOLE:
        return _Content(verdict, 0, 0, 0, 0)
    row = connection.execute(
        # Rows that only say that something is paused are no locations.
        "SELECT (SELECT count(*) FROM locations WHERE first_scan_ns IS NOT NULL) AS locations,"
        " count(*) AS entries,"
        " count(*) FILTER (WHERE last_use_ns > :limit OR first_seen_ns > :limit) AS ahead FROM entries",
        {"limit": limit_ns},
    ).fetchone()
    version = connection.execute("PRAGMA user_version").fetchone()["user_version"]
    return _Content(verdict, version, row["entries"], row["locations"], row["ahead"])


def _judged(found: _Content, path: bytes) -> Finding:
    if found.verdict != _WHOLE:
        return _damaged(found.verdict)
    says = (
        f"whole: {_plural(found.entries, 'entry', 'entries')} of "
        f"{_plural(found.locations, 'location', 'locations')} on record, version {found.version}, "
        f"{_written(path)}"
    )
    if found.ahead:
        return note(
            "ledger",
            f"{says}. {_plural(found.ahead, 'entry has a time', 'entries have times')} more than a day "
            "ahead, from when the clock was wrong: it becomes now with the next pass that trusts the clock",
        )
    if found.version < len(STEPS):
        return note("ledger", f"{says}: the next pass copies it, and brings it to version {len(STEPS)}")
    return good("ledger", says)


def _damaged(verdict: str) -> Finding:
    return weaker(
        "ledger",
        f"damaged ({verdict}): last use falls back to access times and stamps",
        "the next pass sets it aside and starts a new one; pins are in a file of their own",
    )


def _plural(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _written(path: bytes) -> str:
    size, newest = 0, 0
    for suffix in (b"", b"-wal"):  # what was written last is in the log until SQLite moves it
        with suppress(FileNotFoundError):
            found = os.stat(path + suffix)
            size += found.st_size
            # An empty log was made by whoever read last.
            newest = max(newest, found.st_mtime_ns if found.st_size else 0)
    return f"{format_size(size)}, last written {moment(newest)}"


def aside_findings(state_dir: bytes) -> Iterator[Finding]:
    """What was set aside as damaged, or copied before a migration; nothing where there is none."""
    damaged, copies = [], []
    with suppress(OSError), os.scandir(state_dir) as names:
        for each in names:
            if each.name.endswith(_LOG_FILES):
                continue
            if _DAMAGED in each.name:
                damaged.append(_named(each))
            elif each.name.endswith(_BACKUP):
                copies.append(_named(each))
    if damaged:
        yield note(
            "set aside",
            f"damaged, and replaced by a new one: {', '.join(sorted(damaged))}. What a lost ledger knew of "
            "last uses is not known any more",
            "remove it once nobody wants to look at it",
        )
    if copies:
        yield note(
            "copies",
            f"from before a migration: {', '.join(sorted(copies))}",
            "remove them when you will not go back to the older version",
        )


def _named(found: "os.DirEntry[bytes]") -> str:
    return f"{show(found.name)} ({format_size(found.stat(follow_symlinks=False).st_size)})"
