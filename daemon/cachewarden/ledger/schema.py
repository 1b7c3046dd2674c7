"""The ledger's tables, and how an older ledger becomes a newer one.

Each step brings a ledger from version N (its index) to N + 1, in one transaction together with the
version number (`PRAGMA user_version`); step 0 makes a new one. Steps are only ever added: a released
step is never edited, because ledgers that it made exist. What a ledger's tables look like is compared
word by word with what its steps make: a step may add a column or make a table anew, but not
rename in place, because SQLite's versions spell the result differently.

Names of entries and paths are BLOBs: two spellings of an é are two entries, and 0xff is a name.
Types are CHECKs, so that `PRAGMA integrity_check` notices a value whose type a bad block changed; STRICT
tables would say it shorter, but need SQLite 3.37, and Python 3.11 on RHEL 9 comes with 3.34.
"""

Step = tuple[str, ...]


def _column(name: str, kind: str, more: str = "") -> str:
    nullable = "" if "NOT NULL" in more else ", 'null'"
    return f"{name} {kind.upper()} {more} CHECK (typeof({name}) IN ('{kind}'{nullable}))"


def _columns(kind: str, names: str, more: str = "") -> str:
    return ", ".join(_column(name, kind, more) for name in names.split())


_REQUIRED = "NOT NULL"

VERSION_1: Step = (
    f"""CREATE TABLE locations (
        key TEXT PRIMARY KEY,
        {_columns("text", "name", _REQUIRED)}, {_columns("blob", "path", _REQUIRED)},
        {_columns("text", "layout outcome detail recency_source")},
        {_columns("integer", "first_scan_ns last_pass_ns last_success_ns over_limit_since_ns")},
        {_columns("integer", "waiting_since_ns waiting_bytes waiting_entries")},
        {_columns("integer", "confirmed_until_ns paused_until_ns")},
        {_columns("integer", "bytes files entries limit_bytes")},
        {_columns("integer", "available usage_complete inuse_complete")}
    ) WITHOUT ROWID""",
    f"""CREATE TABLE entries (
        {_columns("text", "location", _REQUIRED)}, {_columns("blob", "name", _REQUIRED)},
        {_columns("integer", "first_seen_ns appeared bytes", _REQUIRED)},
        {_columns("integer", "last_use_ns")}, {_columns("text", "last_use_source")},
        PRIMARY KEY (location, name)
    ) WITHOUT ROWID""",
    # `id` is drawn at random when the eviction happens, so that a row has its key before it is
    # written (a full disk may delay that); the rowid keeps the order within one pass.
    f"""CREATE TABLE evictions (
        {_columns("integer", "id", "NOT NULL UNIQUE")},
        {_columns("integer", "time_ns bytes freed_bytes", _REQUIRED)},
        {_columns("text", "location name reason outcome", _REQUIRED)},
        {_columns("blob", "path entry", _REQUIRED)},
        {_columns("integer", "last_use_ns refetched_ns")}, {_columns("text", "last_use_source")}
    )""",
    # What an eviction in hand will be booked as should its process be killed.
    f"""CREATE TABLE intents (
        id INTEGER PRIMARY KEY,
        {_columns("integer", "time_ns bytes freed_bytes ino", _REQUIRED)},
        {_columns("text", "location name reason", _REQUIRED)},
        {_columns("blob", "path entry witness", _REQUIRED)},
        {_columns("integer", "last_use_ns")}, {_columns("text", "last_use_source")}
    )""",
    # Pids and times since the boot mean something in one boot only; `comm` is a name of any bytes.
    f"""CREATE TABLE openers (
        {_columns("text", "boot_id location", _REQUIRED)}, {_columns("blob", "entry", _REQUIRED)},
        {_columns("integer", "pid start_ticks opened_ns", _REQUIRED)}, {_columns("blob", "comm", _REQUIRED)},
        PRIMARY KEY (boot_id, location, entry, pid, start_ticks)
    ) WITHOUT ROWID""",
    "CREATE INDEX evictions_time ON evictions (time_ns)",
    "CREATE INDEX evictions_location ON evictions (location, time_ns)",
)

# Who used an entry last, and when programs that do not count passed through it: see `values.Use`, `Passing`.
VERSION_2: Step = tuple(
    f"ALTER TABLE entries ADD COLUMN {_column(name, kind)}"
    for name, kind in (
        ("opener_pid", "integer"),
        ("opener_uid", "integer"),
        ("opener_name", "blob"),
        ("seen_by", "text"),
        ("passed_ns", "integer"),
        ("passed_until_ns", "integer"),
        ("passed_atime_ns", "integer"),
    )
)

# Whose entry it was: users are told of what went of theirs. NULL in what older versions wrote.
VERSION_3: Step = tuple(
    f"ALTER TABLE {table} ADD COLUMN {_column('owner', 'integer')}" for table in ("evictions", "intents")
)

STEPS: tuple[Step, ...] = (VERSION_1, VERSION_2, VERSION_3)

# Marks a file as a cachewarden ledger: another program's database in our place is set aside, not
# "migrated".
APPLICATION_ID = 0x43574C31  # "CWL1"

# The columns that identify a row, by table.
KEYS = {
    "locations": ("key",),
    "entries": ("location", "name"),
    "evictions": ("id",),
    "intents": ("id",),
    "openers": ("boot_id", "location", "entry", "pid", "start_ticks"),
}
