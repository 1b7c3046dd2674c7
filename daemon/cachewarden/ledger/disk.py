"""Opening the ledger's file: make it, check it, set a damaged one aside, migrate an older one.

WAL with `synchronous = NORMAL`: a crash of ours loses nothing, a loss of power the last moments, and
neither damages the file (https://www.sqlite.org/pragma.html#pragma_synchronous).
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from itertools import chain
from urllib.parse import quote

from cachewarden.errors import LedgerTooNewError
from cachewarden.ledger.files import exclusive, set_aside, stamp, sync_directory
from cachewarden.ledger.schema import APPLICATION_ID, Step
from cachewarden.paths import show

NAME = b"ledger.sqlite"
BUSY_SECONDS = 5.0

_MAGIC = b"SQLite format 3\0"
_SHORT_READ = 522  # SQLITE_IOERR_SHORT_READ: the file ends before its last page
# A version number beyond this was not written by a newer cachewarden, but by a bad block.
_CREDIBLE = 10_000


Identity = tuple[int, int]  # device and inode


class DamagedError(Exception):
    """The file is no ledger, or not a whole one any more; the text says what is wrong with it."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error means a damaged file (and not a full, locked or read-only one)."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    return code == _SHORT_READ or code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def open_for_writing(
    state_dir: bytes, now_ns: int, steps: Sequence[Step], distrusted: Identity | None = None
) -> tuple[sqlite3.Connection, list[str]]:
    """A connection to a sound ledger of the newest version, and notices on what had to be done.

    A file with the identity `distrusted` counts as damaged: whoever used it met damage.

    Raises LedgerTooNewError (the file is as it was), OSError and sqlite3.Error when the disk is
    full, read-only or locked: then the ledger was not touched, or not beyond repair.
    """
    path = os.path.join(state_dir, NAME)
    notices: list[str] = []
    os.makedirs(state_dir, mode=0o700, exist_ok=True)
    # One at a time: two processes that both find a damaged file must not set the new one aside.
    with exclusive(os.path.join(state_dir, b"ledger.lock")):
        try:
            _refuse_distrusted(path, distrusted)
            version = _inspect(path, steps, thoroughly=True)
        except DamagedError as error:
            kept = _set_all_aside(path, now_ns)
            notices.append(
                f"the ledger was damaged ({error}); it was set aside as {show(kept)} and started anew,"
                " last use falls back to access times and stamps"
            )
            version = 0
        else:
            if version == 0:
                notices.append(f"there was no ledger; started one at {show(path)}")
        # SQLite gives its -wal and -shm files the mode of the database.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = connect(path)
        try:
            _bring_up(connection, path, version, (now_ns, steps))
        except BaseException:
            connection.close()
            raise
        if 0 < version < len(steps):
            notices.append(f"the ledger was migrated from version {version} to {len(steps)}")
    return connection, notices


def open_for_reading(state_dir: bytes, steps: Sequence[Step]) -> sqlite3.Connection | None:
    """A connection that cannot write, or None when there is no ledger yet. Creates nothing.

    Raises LedgerTooNewError, DamagedError, OSError, sqlite3.Error.
    """
    path = os.path.join(state_dir, NAME)
    if _inspect(path, steps, thoroughly=False) == 0:
        return None
    return _connect_reading(path)


def identity_of(path: bytes) -> Identity | None:
    """Which file lies at the path now; None when there is none, or none that can be asked."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def connect(path: bytes) -> sqlite3.Connection:
    """A connection for writing, with our settings. Raises sqlite3.Error."""
    connection = sqlite3.connect(path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "journal_size_limit = 4194304"):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return _tuned(connection)


def _tuned(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.row_factory = _as_dict
    # What a bad block did to a text must not stop the row from being read.
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    return connection


def _as_dict(cursor: sqlite3.Cursor, row: tuple[object, ...]) -> dict[str, object]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def _connect_reading(path: bytes) -> sqlite3.Connection:
    """Without a WAL nobody writes, and `immutable` reads without making the -shm file that a
    full disk has no room for; with one, its content counts (https://www.sqlite.org/wal.html#readonly)."""
    wal = path + b"-wal"
    idle = not os.path.exists(wal) or os.stat(wal).st_size == 0
    uri = f"file:{quote(path)}?mode=ro{'&immutable=1' if idle else ''}"
    return _tuned(sqlite3.connect(uri, BUSY_SECONDS, uri=True, isolation_level=None, check_same_thread=False))


def _inspect(path: bytes, steps: Sequence[Step], *, thoroughly: bool) -> int:
    """The version of the ledger at `path`, 0 where there is none yet."""
    try:
        with open(path, "rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        return 0
    except IsADirectoryError:
        raise DamagedError("it is a directory") from None
    if not head:
        return 0
    if len(head) < 100 or not head.startswith(_MAGIC):
        raise DamagedError("it is not an SQLite database")
    # Read from the header, because even a look through SQLite may write (it moves the WAL in).
    _refuse_newer(path, int.from_bytes(head[60:64], "big"), len(steps))
    try:
        with closing(_connect_reading(path)) as connection:
            version = _check_schema(connection, path, steps)
            # 0.4 s for 100,000 entries and as many evictions; quick_check leaves the indexes out.
            if version and thoroughly:
                verdict = connection.execute("PRAGMA integrity_check(1)").fetchone()["integrity_check"]
                if verdict != "ok":
                    raise DamagedError(str(verdict))
            return version
    except UnicodeDecodeError:
        raise DamagedError("its schema is garbled") from None  # SQLite's own message quotes it
    except sqlite3.Error as error:
        if is_damage(error) or getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_ERROR:
            raise DamagedError(str(error)) from error
        raise


def _check_schema(connection: sqlite3.Connection, path: bytes, steps: Sequence[Step]) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()["user_version"])
    _refuse_newer(path, version, len(steps))
    schema = _schema(connection)
    if version == 0 and not schema:
        return 0  # a start was interrupted before the first step
    application = connection.execute("PRAGMA application_id").fetchone()["application_id"]
    if application != APPLICATION_ID or not 0 < version <= len(steps):
        raise DamagedError("it is the database of another program")
    # SQLite keeps the schema as text. A changed letter in it is no damage to integrity_check, but
    # renames a column.
    with closing(_tuned(sqlite3.connect(":memory:", isolation_level=None))) as model:
        for statement in chain.from_iterable(steps[:version]):
            model.execute(statement)
        if any(each not in schema for each in _schema(model)):
            raise DamagedError("its tables are not those of its version")
    return version


def _schema(connection: sqlite3.Connection) -> list[dict[str, object]]:
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    return connection.execute(query).fetchall()


def _refuse_distrusted(path: bytes, distrusted: Identity | None) -> None:
    # By identity: another process may have met the same damage and started a new file already.
    if distrusted is not None and identity_of(path) == distrusted:
        raise DamagedError("a part of it could not be read")


def _refuse_newer(path: bytes, version: int, newest: int) -> None:
    if newest < version <= _CREDIBLE:
        raise LedgerTooNewError(
            f"{show(path)} has version {version}, and this cachewarden knows versions up to {newest}:"
            " install the newer cachewarden again, or move the file away to start without its memory"
        )


def _set_all_aside(path: bytes, now_ns: int) -> bytes:
    kept = set_aside(path, now_ns)
    for suffix in (b"-wal", b"-shm"):
        # A WAL left behind would be taken for that of the new ledger.
        with suppress(FileNotFoundError):
            os.rename(path + suffix, kept + suffix)
    return kept


def _bring_up(
    connection: sqlite3.Connection, path: bytes, version: int, plan: tuple[int, Sequence[Step]]
) -> None:
    now_ns, steps = plan
    if 0 < version < len(steps):
        _back_up(connection, path + b".v%d-%s.backup" % (version, stamp(now_ns)))
    for number, step in enumerate(steps[version:], version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in step:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


def _back_up(connection: sqlite3.Connection, target: bytes) -> None:
    """A copy of the whole ledger, on the disk before this returns. Raises when it cannot be made."""
    fd = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        connection.execute("VACUUM INTO ?", (os.fsdecode(target),))
        os.fsync(fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(target)
        raise
    finally:
        os.close(fd)
    sync_directory(os.path.dirname(target))
