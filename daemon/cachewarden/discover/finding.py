"""What was found, as values: places with their measurements, and what could not be looked at."""

from dataclasses import dataclass

from cachewarden.discover.reach import Notice
from cachewarden.paths import show
from cachewarden.report import JSON_VERSION, iso
from cachewarden_policies.reasons import KeepReason


@dataclass(frozen=True, slots=True)
class KindFound:
    """The entries of one kind in a place. `kept` of them the layout protects, for `reasons`."""

    kind: str
    layout: str
    entries: int
    bytes: int
    kept: int
    reasons: tuple[KeepReason, ...] = ()

    def to_json(self) -> dict[str, object]:
        """An object of `kinds`."""
        return {
            "kind": self.kind,
            "layout": self.layout,
            "entries": self.entries,
            "bytes": self.bytes,
            "kept": self.kept,
            "reasons": [str(reason) for reason in self.reasons],
        }


@dataclass(frozen=True, slots=True)
class Found:
    """One place. Sizes are allocated bytes, lower bounds unless `complete`; times nanoseconds.

    `location` is the name under which it is proposed or (`configured`) in force already; `reason` says why
    it is neither. `would_free_bytes` is what the disk would get back under its policy, None without one.
    `titles` are its tools' names for people; `by_name`: it was found by the name `.accelerate` alone.
    """

    path: bytes
    tools: tuple[str, ...]
    titles: tuple[str, ...]
    via: tuple[str, ...]
    layout: str
    bytes: int
    files: int
    entries: int
    last_use_ns: int | None
    owner: int
    complete: bool
    kinds: tuple[KindFound, ...] = ()
    would_free_bytes: int | None = None
    location: str | None = None
    configured: bool = False
    reason: str | None = None

    @property
    def by_name(self) -> bool:
        """Whether nothing but its name spoke for it."""
        return not self.tools

    def to_json(self) -> dict[str, object]:
        """An object of `places`."""
        return {
            "path": show(self.path),
            "tools": list(self.tools),
            "found_by": list(self.via),
            "owner": self.owner,
            "layout": self.layout,
            "bytes": self.bytes,
            "files": self.files,
            "entries": self.entries,
            "kinds": [kind.to_json() for kind in self.kinds],
            "last_use": iso(self.last_use_ns) if self.last_use_ns is not None else None,
            "usage_complete": self.complete,
            "would_free_bytes": self.would_free_bytes,
            "location": self.location,
            "configured": self.configured,
            "proposed": self.location is not None and not self.configured,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Discovery:
    """All places, the largest first; the proposed configuration; what was left out, and why.

    `unread` counts processes whose environment could not be read.
    """

    places: tuple[Found, ...]
    toml: str
    policy: str
    notices: tuple[Notice, ...] = ()
    unread: int = 0

    def to_json(self) -> dict[str, object]:
        """The object that `discover --json` prints."""
        return {
            "version": JSON_VERSION,
            "places": [place.to_json() for place in self.places],
            "not_looked_at": [{"path": show(each.path), "reason": each.reason} for each in self.notices],
            "processes_not_looked_at": self.unread,
            "toml": self.toml,
        }
