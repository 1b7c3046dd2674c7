"""What the ledger remembers, as values. Times are nanoseconds since the epoch, sizes allocated bytes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from cachewarden.paths import show
from cachewarden.report import iso
from cachewarden_policies.reasons import LastUseSource, Outcome

FOREVER = 2**63 - 1  # the largest integer that SQLite stores: "until somebody says otherwise"


class Opener(NamedTuple):
    """Who used an entry. `name` is the process's own (comm) and `b""` where it had ended before we asked.

    `pid` and `uid` are None where nobody can tell: another pid namespace above ours, a process that ended.
    """

    pid: int | None
    name: bytes
    uid: int | None


class Use(NamedTuple):
    """A use of an entry. `seen_by` says who saw it (`fanotify`, `proc`), for opens."""

    ns: int
    source: LastUseSource
    opener: Opener | None = None
    seen_by: str | None = None


class Passing(NamedTuple):
    """Programs that do not count opened something in an entry, first at `ns`.

    Access times from then `until_ns` may be theirs. `atime_ns` is the entry's access time before that.
    """

    ns: int
    until_ns: int
    atime_ns: int


@dataclass(frozen=True, slots=True)
class Record:
    """What is remembered of one entry.

    `appeared`: it was not there when its location was scanned for the first time. `last_use_ns` is
    the newest use that was recorded, with its source; None when none was. `opener` and `seen_by` tell
    more of that use.
    """

    first_seen_ns: int
    appeared: bool
    bytes: int
    last_use_ns: int | None = None
    last_use_source: LastUseSource | None = None
    opener: Opener | None = None
    seen_by: str | None = None
    passing: Passing | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """Answer to a scan: a record for each entry, and what came back within 7 days of its eviction."""

    records: Mapping[bytes, Record]
    refetched: tuple[tuple[bytes, int], ...] = ()

    @property
    def refetched_bytes(self) -> int:
        """Bytes that came back: when this grows, the quota is too small."""
        return sum(size for _, size in self.refetched)


class LocationChanges(TypedDict, total=False):
    """What a pass, `confirm` and `pause` may change in a location's row; the fields of LocationState."""

    layout: str | None
    first_scan_ns: int | None
    last_pass_ns: int | None
    last_success_ns: int | None
    outcome: Outcome | None
    detail: str | None
    over_limit_since_ns: int | None
    waiting_since_ns: int | None
    waiting_bytes: int | None
    waiting_entries: int | None
    confirmed_until_ns: int | None
    paused_until_ns: int | None
    bytes: int | None
    files: int | None
    entries: int | None
    limit_bytes: int | None
    available: bool | None
    usage_complete: bool | None
    inuse_complete: bool | None
    recency_source: str | None


@dataclass(frozen=True, slots=True)
class LocationState:
    """What is remembered of a location; None where nothing is known yet.

    `last_success_ns` is the last pass that measured it. `detail` says in a sentence why the outcome
    is what it is. `waiting_*`: since when it waits for a confirmation, and of what. The
    numbers are those of the last pass, for `status`.
    """

    key: str
    name: str
    path: bytes
    layout: str | None = None
    first_scan_ns: int | None = None
    last_pass_ns: int | None = None
    last_success_ns: int | None = None
    outcome: Outcome | None = None
    detail: str | None = None
    over_limit_since_ns: int | None = None
    waiting_since_ns: int | None = None
    waiting_bytes: int | None = None
    waiting_entries: int | None = None
    confirmed_until_ns: int | None = None
    paused_until_ns: int | None = None
    bytes: int | None = None
    files: int | None = None
    entries: int | None = None
    limit_bytes: int | None = None
    available: bool | None = None
    usage_complete: bool | None = None
    inuse_complete: bool | None = None
    recency_source: str | None = None

    def confirmed(self, now_ns: int) -> bool:
        """Whether `max_share` does not apply now, because somebody confirmed."""
        return self.confirmed_until_ns is not None and now_ns < self.confirmed_until_ns

    def paused(self, now_ns: int) -> bool:
        """Whether this location itself is paused now (`Ledger.paused` also knows "all of them")."""
        return self.paused_until_ns is not None and now_ns < self.paused_until_ns


@dataclass(frozen=True, slots=True)
class EvictionRow:
    """One eviction as history keeps it. `outcome`: removed, gone, spared or failed.

    `location` is the location's key, `name` its configured name, `path` its root. `reason` is an
    EvictReason, or what a newer version wrote there. `owner` is the entry's user id when it was measured;
    None where an older version wrote the row.
    """

    time_ns: int
    location: str
    name: str
    path: bytes
    entry: bytes
    bytes: int
    freed_bytes: int
    reason: str
    outcome: str
    last_use_ns: int | None = None
    last_use_source: LastUseSource | None = None
    owner: int | None = None

    def to_json(self) -> dict[str, object]:
        """One object of `history --json`."""
        return {
            "time": iso(self.time_ns),
            "location": self.name,
            "path": show(self.path),
            "entry": show(self.entry),
            "bytes": self.bytes,
            "freed_bytes": self.freed_bytes,
            "reason": str(self.reason),
            "outcome": self.outcome,
            "last_use": iso(self.last_use_ns),
            "owner": self.owner,
        }
