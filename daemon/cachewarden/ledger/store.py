"""One ledger file, shared by threads and processes, whose writes never fail.

A write that the disk refuses (full, read-only, locked, gone) stays in memory, is seen by every read,
and is tried again with the next write. Whoever asks for `take_notices` hears of it once when it
begins and once when it is over.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from cachewarden.ledger import disk
from cachewarden.ledger.pending import Changes, Pending, Row, Value
from cachewarden.ledger.schema import STEPS, Step

# The second: what a bad block did to a name can come back in SQLite's own messages.
_ERRORS = (sqlite3.Error, UnicodeDecodeError)


def _nobody_asked(changes: Changes) -> None:
    """Nobody wants to hear of writes."""


class Store:
    """Rows in, rows out; knows nothing of what they mean. Safe to use from several threads.

    Raises LedgerTooNewError when it is made; afterwards it raises nothing for the disk's sake.
    """

    def __init__(
        self, state_dir: bytes, now_ns: int, *, read_only: bool = False, steps: Sequence[Step] = STEPS
    ) -> None:
        self._state_dir = state_dir
        self._path = os.path.join(state_dir, disk.NAME)
        self._steps = steps
        self._read_only = read_only
        self.lock = threading.RLock()
        self._pending = Pending()
        self._connection: sqlite3.Connection | None = None
        self._writable = False
        self._identity: disk.Identity | None = None
        self._distrusted: disk.Identity | None = None
        self._now_ns = now_ns
        self._notices: list[str] = []
        self.trouble: str | None = None
        self.failed_writes = 0
        self.on_write: Callable[[Changes], None] = _nobody_asked
        self._opened = 0
        self._open(now_ns)

    def close(self) -> None:
        """Write what is pending, if the disk lets us, and close the file."""
        with self.lock:
            if self._pending:
                self._try_to_write(self._now_ns)
            self._close()

    def take_notices(self) -> list[str]:
        """What there is to tell since the last call: set aside, migrated, cannot write, writes again."""
        with self.lock:
            notices, self._notices = self._notices, []
            return notices

    @property
    def pending(self) -> int:
        """How many rows wait for the disk."""
        with self.lock:
            return len(self._pending)

    def read(self, sql: str, parameters: Sequence[Value] = (), *, table: str) -> list[Row]:
        """Rows of `table`, pending changes applied over what `sql` selects from the disk.

        The caller filters again: a pending row may be one that `sql` would not have selected.
        What the disk does not answer is an empty answer, and `trouble`.
        """
        with self.lock:
            rows: list[Row] = []
            if self._connection is not None:
                try:
                    rows = self._connection.execute(sql, parameters).fetchall()
                except _ERRORS as error:
                    self._failed(error)
            return self._pending.over(table, rows)

    def version(self) -> tuple[int, int] | None:
        """Another one whenever somebody else may have changed the file, or it is another file.

        What this object writes itself does not change it. None while nothing can be read.
        https://www.sqlite.org/pragma.html#pragma_data_version
        """
        with self.lock:
            if self._connection is None or self.trouble is not None:
                return None
            try:
                row = self._connection.execute("PRAGMA data_version").fetchone()
            except _ERRORS as error:
                self._failed(error)
                return None
            return self._opened, int(row["data_version"])

    def write(self, changes: Changes, now_ns: int) -> None:
        """Take changes over, and bring them and all that waited to the disk in one transaction."""
        if self._read_only:
            raise RuntimeError("the ledger was opened for reading only")
        with self.lock:
            self._now_ns = now_ns
            self._pending.add(changes)
            self.on_write(changes)
            if not self._pending:
                return
            self._try_to_write(now_ns)

    def _try_to_write(self, now_ns: int) -> None:
        if not self._same_file():
            self._close()
            self._open(now_ns)
        if self._writable and not self._flush() and self._connection is None:
            # The write met damage. Opening again sets the file aside, and the rows go to the new one.
            self._open(now_ns)
            if self._writable:
                self._flush()
        if self._pending:
            self.failed_writes += 1

    def _same_file(self) -> bool:
        # Somebody may have removed the file, or another process set it aside: rows written to an
        # unlinked file would be lost without a word.
        return self._writable and disk.identity_of(self._path) == self._identity

    def _open(self, now_ns: int) -> None:
        self._opened += 1
        try:
            if self._read_only:
                self._connection = disk.open_for_reading(self._state_dir, self._steps)
                return
            self._connection, notices = disk.open_for_writing(
                self._state_dir, now_ns, self._steps, self._distrusted
            )
        except (sqlite3.Error, OSError, disk.DamagedError) as error:
            self._failed(error)
            self._open_what_can_be_read()
            return
        self._identity = disk.identity_of(self._path)
        self._notices += notices
        self._writable = True

    def _open_what_can_be_read(self) -> None:
        self._close()
        if not self._read_only:
            with suppress(sqlite3.Error, OSError, disk.DamagedError):
                self._connection = disk.open_for_reading(self._state_dir, self._steps)

    def _close(self) -> None:
        self._writable = False
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _flush(self) -> bool:
        assert self._connection is not None
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for sql, rows in self._pending.statements():
                self._connection.executemany(sql, rows)
            self._connection.execute("COMMIT")
        except _ERRORS as error:
            # A full disk has rolled back already, and "no transaction is active" is no news then.
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            self._failed(error)
            return False
        self._pending.clear()
        if self.trouble is not None:
            self._notices.append("the ledger is written again")
            self.trouble = None
        return True

    def _failed(self, error: Exception) -> None:
        if isinstance(error, sqlite3.Error):
            if getattr(error, "sqlite_errorcode", None) in (None, sqlite3.SQLITE_ERROR):
                raise error  # a statement of ours is wrong: a bug, and no matter of the disk
            if disk.is_damage(error):
                self._distrusted = self._identity
                self._close()  # the next write opens it again, and sets it aside
        text = f"the ledger cannot be used fully: {error}"
        if self.trouble is None:
            kept = "" if self._read_only else "; what it should hold is kept in memory and written later"
            self._notices.append(text + kept)
        self.trouble = text
