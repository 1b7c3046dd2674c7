"""Everything tried, once for the machine and once for each filesystem that has locations."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from cachewarden.clock import Clock
from cachewarden.doctor.clocks import clock_findings, stamps_finding
from cachewarden.doctor.coordination import coordination_finding
from cachewarden.doctor.finding import Finding, Grade, named, weaker
from cachewarden.doctor.ground import ground_findings
from cachewarden.doctor.machine import machine_findings
from cachewarden.doctor.memory import Own, memory_findings
from cachewarden.doctor.trials import trial_findings
from cachewarden.enforce.survey import opened
from cachewarden.errors import LocationUnavailableError
from cachewarden.paths import show
from cachewarden.report import JSON_VERSION
from cachewarden.spec import LocationSpec, Refusal, Territory


@dataclass(frozen=True, slots=True)
class FilesystemFindings:
    """One mount, the locations on it, and what was found with the first of them."""

    point: bytes
    type: bytes
    locations: tuple[LocationSpec, ...]
    findings: tuple[Finding, ...]

    def to_json(self) -> dict[str, object]:
        """The object of `filesystems`."""
        return {
            "mount_point": show(self.point),
            "type": show(self.type),
            "locations": [{"name": each.name, "path": show(each.path)} for each in self.locations],
            "findings": [each.to_json() for each in self.findings],
        }


@dataclass(frozen=True, slots=True)
class Examination:
    """All findings. `unavailable` are locations that could not be looked at, with a finding each."""

    machine: tuple[Finding, ...]
    filesystems: tuple[FilesystemFindings, ...] = ()
    unavailable: tuple[tuple[LocationSpec, Finding], ...] = ()
    missing: tuple[LocationSpec, ...] = ()
    refused: tuple[Refusal, ...] = ()

    @property
    def all(self) -> tuple[Finding, ...]:
        """Every finding."""
        located = (finding for each in self.filesystems for finding in each.findings)
        return (*self.machine, *located, *(finding for _, finding in self.unavailable))

    @property
    def guaranteed(self) -> bool:
        """Whether nothing is weaker than it could be."""
        return all(each.grade is not Grade.WEAKER for each in self.all)

    def to_json(self) -> dict[str, object]:
        """The object that `doctor --json` prints."""
        return {
            "version": JSON_VERSION,
            "guaranteed": self.guaranteed,
            "machine": [each.to_json() for each in self.machine],
            "filesystems": [each.to_json() for each in self.filesystems],
            "unavailable": [
                {"name": spec.name, "path": show(spec.path), **finding.to_json()}
                for spec, finding in self.unavailable
            ],
            "missing": [{"name": each.name, "path": show(each.path)} for each in self.missing],
            "refused": [
                {"name": each.name, "path": show(each.path), "reason": each.reason} for each in self.refused
            ],
        }


@dataclass(slots=True)
class _Mounts:
    """Locations by the mount that they are on."""

    by_id: dict[int, list[LocationSpec]] = field(default_factory=dict)
    unavailable: list[tuple[LocationSpec, Finding]] = field(default_factory=list)

    def sort(self, land: Territory, trusted: frozenset[int]) -> None:
        for spec in land.locations:
            try:
                with opened(spec, trusted) as (_, mount):
                    self.by_id.setdefault(mount.id, []).append(spec)
            except LocationUnavailableError as error:
                self.unavailable.append((spec, weaker("location", str(error))))


def examine(land: Territory, own: Own, clock: Clock) -> Examination:
    """Try everything. Blocks as long as the slowest filesystem; leaves nothing behind.

    Raises ValueError outside the main thread when nobody called `leases.ignore_sigio` before.
    """
    trusted = frozenset({0, os.geteuid()})
    mounts = _Mounts()
    mounts.sort(land, trusted)
    machine = (
        *machine_findings(user_mode=own.user_mode),
        *memory_findings(own, clock.wall_ns()),
        *clock_findings(own, clock),
    )
    found = [_filesystem(specs, trusted, clock) for specs in mounts.by_id.values()]
    return Examination(machine, tuple(found), tuple(mounts.unavailable), land.missing, land.refused)


def _filesystem(specs: list[LocationSpec], trusted: frozenset[int], clock: Clock) -> FilesystemFindings:
    point = kind = b""
    findings: list[Finding] = []
    try:
        with opened(specs[0], trusted) as (root_fd, mount):
            point, kind = mount.point, mount.fstype
            findings += ground_findings(root_fd, mount, [spec.path for spec in specs])
            findings.append(coordination_finding(root_fd, mount, specs))
            findings += _tried(root_fd, specs[0], clock)
    except LocationUnavailableError as error:
        findings.append(weaker("location", str(error)))
    return FilesystemFindings(point, kind, tuple(specs), tuple(findings))


def _tried(root_fd: int, spec: LocationSpec, clock: Clock) -> Iterator[Finding]:
    try:
        yield stamps_finding(root_fd, spec.path, clock.wall_ns())
        yield from trial_findings(root_fd, spec.path, clock)
    except OSError as error:
        yield weaker("trial", f"it could not be carried through: {named(error.errno)}")
