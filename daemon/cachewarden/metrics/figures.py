"""The snapshot that the metrics page and the status page are rendered from. Frozen values only.

Fields have the names of their metrics; a time in nanoseconds since the epoch ends in `_ns` where its
metric ends in `_timestamp_seconds`. None means unknown or not configured: the series is absent then,
because a limit of 0 and no limit are not the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cachewarden_policies.reasons import KeepReason, LastUseSource, Outcome

WatchMode = Literal["fanotify", "inotify", "polling", "partial", "none"]
WATCH_MODES: tuple[WatchMode, ...] = ("fanotify", "inotify", "polling", "partial", "none")
# A location has a best source; that an entry was only ever seen first says nothing of the location.
RECENCY_SOURCES = tuple(source for source in LastUseSource if source is not LastUseSource.FIRST_SEEN)


@dataclass(frozen=True, slots=True)
class UserFigures:
    """One owner's part of a location. `user` is the name, or the uid where there is none."""

    user: str
    bytes: int
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LocationFigures:
    """One location. `users` stays empty unless the configuration wants names on the page."""

    location: str
    path: bytes
    available: bool
    enforcing: bool = True
    files: int | None = None
    entries: int | None = None
    limit_bytes: int | None = None
    target_bytes: int | None = None
    hard_limit_bytes: int | None = None
    usage_complete: bool | None = None
    inuse_complete: bool | None = None
    atime_usable: bool | None = None
    over_limit_since_ns: int | None = None
    oldest_use_ns: int | None = None
    last_pass_ns: int | None = None
    last_success_ns: int | None = None
    shortfall_bytes: int | None = None
    foreign_bytes: int | None = None
    trash_bytes: int | None = None
    blocked_bytes: Mapping[KeepReason, int] = field(default_factory=dict)
    outcome: Outcome | None = None
    watch_mode: WatchMode = "none"
    recency_source: LastUseSource | None = None
    users: tuple[UserFigures, ...] = ()
    bytes: int | None = None  # last: in a class body, this name hides the type


@dataclass(frozen=True, slots=True)
class FilesystemFigures:
    """One filesystem, by its mount point. `avail_*` is what an unprivileged writer may still use."""

    filesystem: bytes
    size_bytes: int | None = None
    avail_bytes: int | None = None
    files: int | None = None
    avail_files: int | None = None
    min_free_bytes: int | None = None
    deleted_open_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ServiceFigures:
    """The service itself. `since_ns` is when it started."""

    version: str
    since_ns: int
    config_last_reload_successful: bool = True
    config_last_reload_success_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at one moment."""

    service: ServiceFigures
    locations: tuple[LocationFigures, ...] = ()
    filesystems: tuple[FilesystemFigures, ...] = ()
