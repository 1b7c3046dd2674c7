"""What `status` shows: the service, and each location as its last pass left it."""

from collections.abc import Sequence
from dataclasses import dataclass

from cachewarden.ledger import LocationState, ServiceState
from cachewarden.paths import show
from cachewarden.report import JSON_VERSION, iso
from cachewarden.spec import LocationSpec
from cachewarden_policies.reasons import Outcome


@dataclass(frozen=True, slots=True)
class LocationStatus:
    """One location. `state` has the figures of its last pass; `paused_until_ns` of a pause in force."""

    spec: LocationSpec
    state: LocationState
    available: bool
    paused_until_ns: int | None = None
    next_pass_ns: int | None = None
    watch_mode: str | None = None

    @property
    def outcome(self) -> Outcome | None:
        """How its last pass ended; None before the first one.

        A path that is not there is no failure (a user deleted his cache), unless it must be a mount.
        """
        if not self.available:
            missing = self.state.bytes is None and not self.spec.must_be_mount
            return None if missing else Outcome.UNAVAILABLE
        return self.state.outcome

    def to_json(self) -> dict[str, object]:
        """One object of `locations`."""
        state = self.state
        return {
            "name": self.spec.name,
            "path": show(self.spec.path),
            "bytes": state.bytes,
            "files": state.files,
            "entries": state.entries,
            "limit_bytes": state.limit_bytes,
            "available": self.available,
            "usage_complete": state.usage_complete,
            "inuse_complete": state.inuse_complete,
            "recency_source": state.recency_source,
            "watch_mode": self.watch_mode,
            "over_limit_since": iso(state.over_limit_since_ns),
            "last_pass": iso(state.last_pass_ns),
            "next_pass": iso(self.next_pass_ns),
            "outcome": str(self.outcome) if self.outcome is not None else None,
            "detail": state.detail,
            "layout": state.layout,
            "enforcing": self.spec.enforce and self.paused_until_ns is None,
            "paused_until": iso(self.paused_until_ns),
            "waiting_since": iso(state.waiting_since_ns),
            "waiting_bytes": state.waiting_bytes,
            "waiting_entries": state.waiting_entries,
            "confirmed_until": iso(state.confirmed_until_ns),
        }


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that `status` shows. `refused` are sentences on matches that were not taken up."""

    service: ServiceState | None
    locations: Sequence[LocationStatus]
    refused: Sequence[str] = ()
    warnings: Sequence[str] = ()

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of all locations that are there."""
        known = [each.state.outcome if each.available else Outcome.UNAVAILABLE for each in self.locations]
        return max(
            (outcome for outcome in known if outcome is not None),
            key=lambda outcome: outcome.severity,
            default=Outcome.WITHIN_LIMITS,
        )

    def to_json(self) -> dict[str, object]:
        """The object of `status --json`."""
        service = self.service
        return {
            "version": JSON_VERSION,
            "service": {
                "running": service is not None,
                "pid": service.pid if service is not None else None,
                "since": iso(service.since_ns) if service is not None else None,
                "reload": service.reload if service is not None else None,
            },
            "locations": [each.to_json() for each in self.locations],
            "refused": list(self.refused),
            "warnings": list(self.warnings),
        }
