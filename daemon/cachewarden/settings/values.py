"""What the configuration says, checked and converted, as the rest of the daemon gets to see it."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cachewarden.errors import UsageError
from cachewarden.spec import LocationSpec, PoolSpec
from cachewarden.units import ClockRange
from cachewarden_policies.policy import Policy


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    """The section [daemon]. Times in nanoseconds.

    `http` is (host, port), port 0 for any free one, or None when it is off. `schedule` is a cron
    text of five fields in which 0 and 7 are Sunday. `quiet_hours` are in local time.
    """

    state_dir: bytes
    runtime_dir: bytes
    http: tuple[str, int] | None
    interval: int
    schedule: str | None
    quiet_hours: tuple[ClockRange, ...]
    settle: int
    enforce: bool
    ignore_processes: tuple[str, ...]
    log_format: Literal["auto", "text", "json"]
    audit_file: bytes | None
    metrics_users: bool
    user_mode: bool


@dataclass(frozen=True, slots=True)
class LocationPattern:
    """A location as configured, before globbing: absolute, normalised patterns, and what each match becomes.

    `template` is complete but for its `path`, which is empty.
    """

    name: str
    patterns: tuple[bytes, ...]
    template: LocationSpec


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the effective configuration: a key, its TOML text, and where it was set."""

    key: str
    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the effective configuration, for `config show`."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration. A function of files and environment only: nothing was scanned for it.

    `sources` are the files that were read, in order. `home` is $HOME, never a location itself.
    """

    daemon: DaemonSettings
    locations: tuple[LocationPattern, ...] = ()
    pools: tuple[PoolSpec, ...] = ()
    policies: Mapping[str, Policy] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    home: bytes | None = None
    listing: tuple[Section, ...] = ()

    @property
    def report_only(self) -> tuple[str, ...]:
        """The names of the locations that are not enforced, by their own key or by the one in [daemon]."""
        return tuple(each.name for each in self.locations if not each.template.enforce)

    def require(self, name: str) -> None:
        """Raises UsageError unless a location is called so; it says which ones there are, and guesses."""
        names = sorted(pattern.name for pattern in self.locations)
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            guess = f"; did you mean {near[0]}?" if near else ""
            known = ", ".join(names) or "none"
            raise UsageError(f"no location is called {name!r} (configured: {known}){guess}")
