"""The snapshot behind metrics and status page: what the last passes found, held in memory."""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from cachewarden.metrics import FilesystemFigures, LocationFigures, ServiceFigures, Snapshot, UserFigures
from cachewarden.owners import user_name
from cachewarden.report import Gauges, LocationReport
from cachewarden.scan import Totals
from cachewarden.spec import LocationSpec
from cachewarden.watch import WatchMode
from cachewarden_policies.reasons import LastUseSource, Outcome

_OVER = frozenset({Outcome.SHORT, Outcome.WAITING})
_NOTHING_SEEN = frozenset({Outcome.UNAVAILABLE, Outcome.FAILED})


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of one location. `report` is the last that could look at it, None for an absent one."""

    report: LocationReport | None = None
    outcome: Outcome | None = None
    last_pass_ns: int | None = None
    last_success_ns: int | None = None
    over_since_ns: int | None = None
    absent: bool = False
    users: tuple[UserFigures, ...] = ()


def _absent(before: _Known) -> _Known:
    """A cache that its user deleted: no figures, and over no limit."""
    return _Known(
        outcome=Outcome.WITHIN_LIMITS,
        last_pass_ns=before.last_pass_ns,
        last_success_ns=before.last_success_ns,
        absent=True,
    )


class Figures:
    """Written by workers and the main loop; scrapes read the snapshot, which never waits for work."""

    def __init__(self, service: ServiceFigures, watch_mode: Callable[[str], WatchMode]) -> None:
        self._lock = threading.Lock()
        self._service = service
        self._watch_mode = watch_mode
        self._specs: tuple[tuple[LocationSpec, bool], ...] = ()
        self._known: dict[str, _Known] = {}
        self._recalled: dict[str, Totals] = {}
        self._silent: frozenset[str] = frozenset()
        self._ghosts: dict[bytes, int] = {}
        self.names_users = False  # the service sets it, from the configuration

    def reloaded(self, now_ns: int, *, successful: bool) -> None:
        """The configuration was read again, or could not be."""
        with self._lock:
            self._service = replace(self._service, config_last_reload_successful=successful)
            if successful:
                self._service = replace(self._service, config_last_reload_success_ns=now_ns)

    def set_locations(self, there: Collection[LocationSpec], missing: Collection[LocationSpec]) -> None:
        """The locations in force, and those that are configured and not there."""
        with self._lock:
            self._specs = (*((spec, True) for spec in there), *((spec, False) for spec in missing))
            keys = {spec.key for spec, _ in self._specs}
            self._known = {key: known for key, known in self._known.items() if key in keys}
            self._recalled = {key: totals for key, totals in self._recalled.items() if key in keys}
            for spec in missing:
                if spec.key in self._known and not spec.must_be_mount:
                    self._known[spec.key] = _absent(self._known[spec.key])

    def set_silent(self, keys: Collection[str]) -> None:
        """The locations whose filesystem does not answer at this moment."""
        with self._lock:
            self._silent = frozenset(keys)

    def recalled(self, spec: LocationSpec, totals: Totals) -> None:
        """What a location came to when an earlier process left; the first pass looks for itself."""
        with self._lock:
            self._recalled[spec.key] = totals

    def took(self, spec: LocationSpec, report: LocationReport, now_ns: int) -> None:
        """A pass over a location ended."""
        users = _users(report.gauges) if report.gauges is not None else ()  # may ask the network for names
        with self._lock:
            self._recalled.pop(spec.key, None)
            before = self._known.get(spec.key, _Known())
            if report.absent:
                self._known[spec.key] = replace(_absent(before), last_pass_ns=now_ns)
                return
            over = report.outcome in _OVER
            looked = report.gauges is not None
            self._known[spec.key] = _Known(
                report=report if looked else before.report,
                outcome=report.outcome,
                last_pass_ns=now_ns,
                last_success_ns=now_ns if looked else before.last_success_ns,
                over_since_ns=(before.over_since_ns or now_ns) if over else None,
                users=users if looked else before.users,
            )

    def crashed(self, spec: LocationSpec, now_ns: int) -> None:
        """A pass over a location ended by a bug; what was known of it stands."""
        with self._lock:
            before = self._known.get(spec.key, _Known())
            self._known[spec.key] = replace(before, outcome=Outcome.FAILED, last_pass_ns=now_ns)

    def set_ghosts(self, ghosts: Mapping[bytes, int]) -> None:
        """Bytes of deleted files that are still open, by mount point."""
        with self._lock:
            self._ghosts.update(ghosts)

    def owned(self, key: str) -> Mapping[int, int] | None:
        """Bytes of a location's entries by the uid of their owner; None before a pass has looked."""
        with self._lock:
            report = self._known.get(key, _Known()).report
        return report.gauges.owned if report is not None and report.gauges is not None else None

    def snapshot(self) -> Snapshot:
        """Everything at this moment."""
        with self._lock:
            specs, known, silent = self._specs, dict(self._known), self._silent
            service, ghosts = self._service, dict(self._ghosts)
        located = [
            self._location(spec, known.get(spec.key, _Known()), there=there, silent=spec.key in silent)
            for spec, there in specs
        ]
        gauges = [
            found.report.gauges
            for spec, _ in specs
            if (found := known.get(spec.key)) is not None
            and found.report is not None
            and found.report.gauges is not None
        ]
        return Snapshot(service, tuple(located), _filesystems(gauges, ghosts))

    def _location(self, spec: LocationSpec, known: _Known, *, there: bool, silent: bool) -> LocationFigures:
        report = known.report
        away = silent or (spec.must_be_mount and not there)
        outcome = known.outcome
        if outcome is None and not there:  # no pass is made over what is not there
            outcome = Outcome.WITHIN_LIMITS
        available = there and not away and not known.absent and known.outcome not in _NOTHING_SEEN
        figures = LocationFigures(
            location=spec.name,
            path=spec.path,
            available=available,
            enforcing=spec.enforce,
            limit_bytes=spec.policy.limits.max_size,
            last_pass_ns=known.last_pass_ns,
            last_success_ns=known.last_success_ns,
            over_limit_since_ns=known.over_since_ns,
            outcome=Outcome.UNAVAILABLE if away and outcome is not None else outcome,
            watch_mode=self._watch_mode(spec.key),
        )
        if report is None or report.gauges is None:
            totals = self._recalled.get(spec.key)
            if totals is None or not available:
                return figures
            return replace(
                figures,
                bytes=totals.bytes,
                files=totals.files,
                entries=totals.entries,
                usage_complete=False,
            )
        gauges = report.gauges
        return replace(
            figures,
            bytes=report.bytes_after,
            files=gauges.files,
            entries=gauges.entries,
            limit_bytes=report.limit_bytes,
            target_bytes=report.target_bytes,
            hard_limit_bytes=gauges.hard_limit_bytes,
            usage_complete=report.usage_complete,
            inuse_complete=report.inuse_complete,
            atime_usable=gauges.atime_usable,
            enforcing=gauges.enforcing,
            oldest_use_ns=gauges.oldest_use_ns,
            shortfall_bytes=report.shortfall_bytes,
            foreign_bytes=report.foreign_bytes,
            trash_bytes=gauges.trash_bytes,
            blocked_bytes=report.blocked,
            recency_source=LastUseSource(gauges.recency_source),
            users=known.users if self.names_users else (),
        )


def _users(gauges: Gauges) -> tuple[UserFigures, ...]:
    """One for each name: two users may have one."""
    found: Counter[str] = Counter()
    for uid, size in gauges.owned.items():
        found[user_name(uid)] += size
    return tuple(UserFigures(name, size) for name, size in sorted(found.items()))


def _filesystems(gauges: Collection[Gauges], ghosts: Mapping[bytes, int]) -> tuple[FilesystemFigures, ...]:
    found: dict[bytes, FilesystemFigures] = {}
    for each in gauges:
        room = each.room
        floors = [found[room.point].min_free_bytes if room.point in found else None, room.min_free_bytes]
        found[room.point] = FilesystemFigures(
            filesystem=room.point,
            size_bytes=room.size_bytes,
            avail_bytes=room.avail_bytes,
            files=room.inodes or None,  # btrfs makes inodes as it needs them, and says 0
            avail_files=room.avail_inodes if room.inodes else None,
            min_free_bytes=max((floor for floor in floors if floor is not None), default=None),
            deleted_open_bytes=ghosts.get(room.point),
        )
    return tuple(found.values())
