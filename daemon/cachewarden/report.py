"""What happened: outcomes of single evictions, and the report of a pass. Values only, ready for JSON."""

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cachewarden.paths import show
from cachewarden_policies.reasons import EvictReason, KeepReason, LastUseSource, Outcome

JSON_VERSION = 1


@dataclass(frozen=True, slots=True)
class Holder:
    """Who uses an entry. `kind`: open, mapped, cwd, root, exe, directory, mount, lock, opener."""

    kind: str
    pid: int | None = None
    name: str = ""
    user: str = ""

    def to_json(self) -> dict[str, object]:
        """The object of `holders` in the JSON output."""
        return {"kind": self.kind, "pid": self.pid, "name": self.name, "user": self.user}


@dataclass(frozen=True, slots=True)
class Removed:
    """The entry is gone and we did it. Freed: of inodes whose last link and last descriptor went."""

    freed_bytes: int
    freed_inodes: int


@dataclass(frozen=True, slots=True)
class Gone:
    """The entry was gone already: success, with nothing freed by us."""


@dataclass(frozen=True, slots=True)
class Spared:
    """The entry turned out to be busy or changed, and is where it was."""

    reason: KeepReason
    holders: tuple[Holder, ...] = ()
    rolled_back: bool = False  # it had been moved, and was put back


@dataclass(frozen=True, slots=True)
class Failed:
    """An error of the filesystem stopped this eviction; the entry is where it was, or in the trash."""

    errno: int
    path: bytes


EvictionOutcome = Removed | Gone | Spared | Failed


@dataclass(frozen=True, slots=True)
class EvictedEntry:
    """One line of `evicted` (or of `would_evict` in a plan, where dev, ino and newest_ns matter).

    `owner` is for the history, and not in its JSON.
    """

    entry: bytes
    bytes: int
    freed_bytes: int
    reason: EvictReason
    last_use_ns: int
    last_use_source: LastUseSource
    dev: int = 0
    ino: int = 0
    newest_ns: int = 0
    owner: int | None = None

    def to_json(self, *, plan: bool = False) -> dict[str, object]:
        """The object of `evicted`; with `plan`, also what `apply` checks."""
        shown: dict[str, object] = {
            "entry": show(self.entry),
            "bytes": self.bytes,
            "freed_bytes": self.freed_bytes,
            "reason": str(self.reason),
            "last_use": iso(self.last_use_ns),
            "last_use_source": str(self.last_use_source),
        }
        if plan:
            shown |= {"dev": self.dev, "ino": self.ino, "newest_ns": self.newest_ns}
        return shown


@dataclass(frozen=True, slots=True)
class SparedEntry:
    """One line of `spared` (or of `kept` in a plan)."""

    entry: bytes
    bytes: int
    reason: KeepReason
    holders: tuple[Holder, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The object of `spared`."""
        return {
            "entry": show(self.entry),
            "bytes": self.bytes,
            "reason": str(self.reason),
            "holders": [holder.to_json() for holder in self.holders],
        }


@dataclass(frozen=True, slots=True)
class FailedEntry:
    """One line of `failed`. What the history tells of it besides is not in its JSON."""

    entry: bytes
    errno: int
    path: bytes
    reason: EvictReason = EvictReason.REQUESTED  # why it was to go
    bytes: int = 0
    last_use_ns: int | None = None
    last_use_source: LastUseSource | None = None
    owner: int | None = None

    def to_json(self) -> dict[str, object]:
        """The object of `failed`; `errno` by its name."""
        return {
            "entry": show(self.entry),
            "errno": errno.errorcode.get(self.errno, str(self.errno)),
            "path": show(self.path),
        }


@dataclass(frozen=True, slots=True)
class Room:
    """The filesystem of a location: st_dev, its mount point, and what of it is free for ordinary users.

    `min_free_bytes` is the strictest floor of the policies on it, None without any.
    """

    dev: int
    point: bytes
    size_bytes: int
    avail_bytes: int
    inodes: int
    avail_inodes: int
    min_free_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Gauges:
    """What only the metrics show of a location, beside its report. `owned`: bytes of entries by uid."""

    files: int
    entries: int
    trash_bytes: int
    atime_usable: bool
    recency_source: str
    enforcing: bool
    hard_limit_bytes: int | None
    oldest_use_ns: int | None
    room: Room
    owned: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LocationReport:
    """One location's part of a pass, or of a plan (`evicted` is then what would go, `spared` what stays)."""

    name: str
    path: bytes
    layout: str
    outcome: Outcome
    bytes_before: int = 0
    bytes_after: int = 0
    limit_bytes: int | None = None
    target_bytes: int | None = None
    need_bytes: int = 0
    shortfall_bytes: int = 0
    usage_complete: bool = True
    inuse_complete: bool = False
    evicted: tuple[EvictedEntry, ...] = ()
    spared: tuple[SparedEntry, ...] = ()
    failed: tuple[FailedEntry, ...] = ()
    foreign_bytes: int = 0
    blocked: Mapping[KeepReason, int] = field(default_factory=dict)
    disk_freed_bytes: int = 0
    warnings: tuple[str, ...] = ()
    gauges: Gauges | None = None  # None where the location could not be looked at
    absent: bool = False  # its path is not there, which is no error
    if_enforced: tuple[EvictedEntry, ...] | None = None  # in a plan of what only reports: what would go then

    def to_json(self, in_use_checked: str | None = None) -> dict[str, object]:
        """The object of `locations`; `in_use_checked` makes it that of a plan."""
        plan = in_use_checked is not None
        shown: dict[str, object] = {
            "name": self.name,
            "path": show(self.path),
            "layout": self.layout,
            "outcome": str(self.outcome),
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "limit_bytes": self.limit_bytes,
            "target_bytes": self.target_bytes,
            "need_bytes": self.need_bytes,
            "shortfall_bytes": self.shortfall_bytes,
            "usage_complete": self.usage_complete,
            "inuse_complete": self.inuse_complete,
            "would_evict" if plan else "evicted": [each.to_json(plan=plan) for each in self.evicted],
            "kept" if plan else "spared": [each.to_json() for each in self.spared],
            "failed": [each.to_json() for each in self.failed],
            "foreign_bytes": self.foreign_bytes,
            "blocked_bytes": {str(reason): count for reason, count in sorted(self.blocked.items())},
            "disk_freed_bytes": self.disk_freed_bytes,
            "warnings": list(self.warnings),
        }
        if plan:
            shown["in_use_checked"] = in_use_checked
            then = self.if_enforced
            shown["would_evict_if_enforced"] = then and [each.to_json(plan=True) for each in then]
        return shown


@dataclass(frozen=True, slots=True)
class PassReport:
    """A pass (or plan) over several locations; the worst outcome is the outcome of all."""

    locations: tuple[LocationReport, ...]
    in_use_checked: str | None = None  # set for plans: proc, lease or service
    locked: tuple[str, ...] = ()  # who holds locations that were not passed over

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of all locations; within limits when there is none."""
        return max(
            (each.outcome for each in self.locations),
            key=lambda outcome: outcome.severity,
            default=Outcome.WITHIN_LIMITS,
        )

    def to_json(self) -> dict[str, object]:
        """The one object that `once`, `apply` and `plan` print."""
        return {
            "version": JSON_VERSION,
            "outcome": str(self.outcome),
            "locations": [each.to_json(self.in_use_checked) for each in self.locations],
        }


def iso(time_ns: int | None) -> str | None:
    """A time as RFC 3339 in UTC with seconds, or None."""
    if time_ns is None:
        return None
    return datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
