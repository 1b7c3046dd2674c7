"""What `status` shows: the service, and each location as its last pass left it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cachewarden.ledger import LocationState, ServiceState
from cachewarden.paths import show
from cachewarden.report import JSON_VERSION, iso
from cachewarden.spec import LocationSpec, Territory
from cachewarden_policies.reasons import Outcome


@dataclass(frozen=True, slots=True)
class LocationStatus:
    """One location. `state` has the figures of its last pass; `paused_until_ns` of a pause in force.

    `missing`: its path is not there now.
    """

    spec: LocationSpec
    state: LocationState
    missing: bool
    paused_until_ns: int | None = None
    next_pass_ns: int | None = None
    watch_mode: str | None = None

    @property
    def available(self) -> bool:
        """Whether it is there and answers."""
        return not self.missing and self.state.available is not False

    @property
    def outcome(self) -> Outcome | None:
        """How its last pass ended; None before the first one.

        A path that is not there is no failure (a user deleted his cache), unless it must be a mount.
        """
        if self.missing:
            return Outcome.UNAVAILABLE if self.spec.must_be_mount else None
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
        return max(
            (each.outcome for each in self.locations if each.outcome is not None),
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
                "blinded": list(service.blinded) if service is not None else [],
            },
            "locations": [each.to_json() for each in self.locations],
            "refused": list(self.refused),
            "warnings": list(self.warnings),
        }


def nothing_known(spec: LocationSpec) -> LocationState:
    """The state of a location that no pass has looked at."""
    return LocationState(spec.key, spec.name, spec.path)


def refusals(land: Territory) -> Iterator[str]:
    """A sentence for each match that was not taken up."""
    for each in land.refused:
        yield f"{each.name}: {show(each.path)} is refused: {each.reason}"
