"""The gauges: what is true at this moment, taken from the snapshot."""

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from cachewarden.metrics.figures import (
    RECENCY_SOURCES,
    WATCH_MODES,
    FilesystemFigures,
    LocationFigures,
    ServiceFigures,
    Snapshot,
)
from cachewarden.metrics.text import Rows, escape, family, labels
from cachewarden_policies.reasons import Outcome

Value = int | float | None
F = TypeVar("F")


def _seconds(time_ns: int | None) -> float | None:
    # Milliseconds: a float of today's seconds has no room for nanoseconds.
    return None if time_ns is None else time_ns // 10**6 / 1000


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)


_LOCATION: tuple[tuple[str, str, Callable[[LocationFigures], Value]], ...] = (
    ("bytes", "Allocated bytes in the location.", lambda it: it.bytes),
    ("files", "Inodes in the location, each counted once.", lambda it: it.files),
    ("entries", "Entries in the location.", lambda it: it.entries),
    ("limit_bytes", "Soft limit (max_size): eviction starts above it.", lambda it: it.limit_bytes),
    ("target_bytes", "Where eviction stops (target_size).", lambda it: it.target_bytes),
    ("hard_limit_bytes", "Above it soft guards yield (hard_max_size).", lambda it: it.hard_limit_bytes),
    ("available", "1 when the location is there and answers.", lambda it: _flag(it.available)),
    (
        "usage_complete",
        "0 when parts could not be read: all figures are lower bounds.",
        lambda it: _flag(it.usage_complete),
    ),
    (
        "inuse_complete",
        "0 when not all ways of use could be looked at: unknown counts as in use.",
        lambda it: _flag(it.inuse_complete),
    ),
    (
        "atime_usable",
        "1 when access times are kept by the mount, to a day or better.",
        lambda it: _flag(it.atime_usable),
    ),
    ("enforcing", "0 when the location is report only, or paused.", lambda it: _flag(it.enforcing)),
    (
        "over_limit_since_timestamp_seconds",
        "Since when a limit is crossed; absent when none is.",
        lambda it: _seconds(it.over_limit_since_ns),
    ),
    (
        "oldest_use_timestamp_seconds",
        "Last use of the entry that was used least recently.",
        lambda it: _seconds(it.oldest_use_ns),
    ),
    ("last_pass_timestamp_seconds", "End of the last pass.", lambda it: _seconds(it.last_pass_ns)),
    (
        "last_success_timestamp_seconds",
        "End of the last pass that was neither failed nor unavailable.",
        lambda it: _seconds(it.last_success_ns),
    ),
    ("shortfall_bytes", "What the limits ask for and no entry may give.", lambda it: it.shortfall_bytes),
    ("foreign_bytes", "Bytes that are not part of the cache; never touched.", lambda it: it.foreign_bytes),
    ("trash_bytes", "Bytes on their way off the disk.", lambda it: it.trash_bytes),
)

_FILESYSTEM: tuple[tuple[str, str, Callable[[FilesystemFigures], Value]], ...] = (
    ("size_bytes", "Size of the filesystem.", lambda it: it.size_bytes),
    ("avail_bytes", "Free space for unprivileged writers (f_bavail).", lambda it: it.avail_bytes),
    ("files", "Inodes of the filesystem.", lambda it: it.files),
    ("avail_files", "Free inodes for unprivileged writers (f_favail).", lambda it: it.avail_files),
    ("min_free_bytes", "Eviction starts when less than this is free.", lambda it: it.min_free_bytes),
    (
        "deleted_open_bytes",
        "Bytes of deleted files that somebody still has open.",
        lambda it: it.deleted_open_bytes,
    ),
)


def gauges(snapshot: Snapshot) -> Iterator[str]:
    """All lines of all gauges."""
    marked = [(where(each.location, each.path), each) for each in snapshot.locations]
    yield from _plain("location", _LOCATION, marked)
    yield from _enums(marked)
    yield from _users(marked)
    mounts = [(labels(filesystem=each.filesystem), each) for each in snapshot.filesystems]
    yield from _plain("filesystem", _FILESYSTEM, mounts)
    yield from _service(snapshot.service)


def where(location: str, path: bytes) -> str:
    """The two labels that everything of a location has."""
    return labels(location=location, path=path)


def _plain(
    prefix: str, table: Sequence[tuple[str, str, Callable[[F], Value]]], marked: Sequence[tuple[str, F]]
) -> Iterator[str]:
    for name, help_text, value_of in table:
        rows = ((text, value) for text, each in marked if (value := value_of(each)) is not None)
        yield from family(f"cachewarden_{prefix}_{name}", "gauge", help_text, rows)


def _enums(marked: Sequence[tuple[str, LocationFigures]]) -> Iterator[str]:
    """One series for each member of an enum, 1 for the one that holds.

    Not the current one alone: that series would vanish at each change, and an alert on it would see
    a gap where it should see a 0.
    """
    yield from family(
        "cachewarden_location_blocked_bytes",
        "gauge",
        "Bytes that a reason keeps while a limit cannot be reached.",
        (
            (f'{text},reason="{escape(reason)}"', kept)
            for text, each in marked
            for reason, kept in sorted(each.blocked_bytes.items())
        ),
    )
    yield from family(
        "cachewarden_location_outcome",
        "gauge",
        "How the last pass ended.",
        _states("outcome", list(Outcome), ((t, e.outcome) for t, e in marked)),
    )
    yield from family(
        "cachewarden_location_watch_mode",
        "gauge",
        "How changes are noticed between two passes.",
        _states("mode", WATCH_MODES, ((t, e.watch_mode) for t, e in marked)),
    )
    yield from family(
        "cachewarden_location_recency_source",
        "gauge",
        "The best source of last use that the location has.",
        _states("source", RECENCY_SOURCES, ((t, e.recency_source) for t, e in marked)),
    )


def _states(label: str, members: Sequence[str], current: Iterable[tuple[str, str | None]]) -> Rows:
    suffixes = [(member, f',{label}="{escape(member)}"') for member in members]
    for text, holding in current:
        if holding is not None:
            for member, suffix in suffixes:
                yield text + suffix, int(member == holding)


def _users(marked: Sequence[tuple[str, LocationFigures]]) -> Iterator[str]:
    owners = [(f'{text},user="{escape(user.user)}"', user) for text, each in marked for user in each.users]
    yield from family(
        "cachewarden_location_user_bytes",
        "gauge",
        "Allocated bytes that belong to a user.",
        ((text, user.bytes) for text, user in owners),
    )
    yield from family(
        "cachewarden_location_user_limit_bytes",
        "gauge",
        "What a user may store in the location.",
        ((text, user.limit_bytes) for text, user in owners if user.limit_bytes is not None),
    )


def _service(service: ServiceFigures) -> Iterator[str]:
    yield from family(
        "cachewarden_config_last_reload_successful",
        "gauge",
        "0 when the last reload was refused and the old configuration is still in force.",
        [("", int(service.config_last_reload_successful))],
    )
    loaded = _seconds(service.config_last_reload_success_ns)
    yield from family(
        "cachewarden_config_last_reload_success_timestamp_seconds",
        "gauge",
        "When the configuration in force was read.",
        [] if loaded is None else [("", loaded)],
    )
    built = labels(version=service.version, python_version=platform.python_version())
    yield from family("cachewarden_build_info", "gauge", "The running version; always 1.", [(built, 1)])
