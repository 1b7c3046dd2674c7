"""What the service says of its passes: one log line per eviction and per pass, counters, the audit file."""

import re
from collections.abc import Callable

from cachewarden.clock import Clock
from cachewarden.enforce.journal import Journal
from cachewarden.logs import AuditFile, Changes, get_logger
from cachewarden.metrics import Metrics
from cachewarden.paths import show
from cachewarden.report import EvictedEntry, FailedEntry, LocationReport, SparedEntry, iso
from cachewarden.scan import Totals
from cachewarden.service.auditing import Auditor
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import DAY
from cachewarden_policies.reasons import Outcome

_TROUBLE = frozenset({Outcome.SHORT, Outcome.WAITING, Outcome.UNAVAILABLE, Outcome.FAILED})


class Chronicle(Journal):
    """A journal of passes (`enforce.Journal`). `progress` is told of each location that moves on,
    `recalled` of figures that are not verified yet."""

    def __init__(
        self,
        metrics: Metrics,
        clock: Clock,
        progress: Callable[[LocationSpec], None],
        want: Callable[[str], None],
        recalled: Callable[[LocationSpec, Totals], None],
    ) -> None:
        self._auditor = Auditor(clock, "cachewarden run")
        self._metrics = metrics
        self._clock = clock
        self._progress = progress
        self._want = want
        self._recalled = recalled
        self._log = get_logger()
        self._changes = Changes()

    def audit_to(self, path: bytes | None) -> None:
        """Record evictions in this file from here on; None: nowhere. The one in force goes on."""
        before = self._auditor.file
        if before is not None and before.path == path:
            return
        self._auditor.file = None if path is None else AuditFile(path)
        self._changes.forget("audit")

    def measured(self, spec: LocationSpec, files: int, size: int) -> None:  # noqa: ARG002 - the interface's
        """A walk goes on."""
        self._progress(spec)

    def recalled(self, spec: LocationSpec, totals: Totals, changed: int) -> None:
        """Shown until the first pass has looked for itself."""
        self._recalled(spec, totals)
        self._log.info("figures of the last run, to be verified", **_place(spec), changed_directories=changed)

    def planned(self, spec: LocationSpec, size: int) -> None:
        """Counted only, beside what is really evicted and freed."""
        self._metrics.count_plan(spec.name, spec.path, size)

    def evicted(self, spec: LocationSpec, entry: EvictedEntry) -> None:
        """One line, whatever the log level of everything else."""
        self._progress(spec)
        self._metrics.count_eviction(spec.name, spec.path, entry.reason, entry.bytes, entry.freed_bytes)
        self._log.info(
            "evicted",
            **_place(spec),
            entry=show(entry.entry),
            bytes=entry.bytes,
            freed_bytes=entry.freed_bytes,
            reason=str(entry.reason),
            last_use=iso(entry.last_use_ns),
            last_use_source=str(entry.last_use_source),
        )
        self._audited(self._auditor.evicted(spec, entry))

    def spared(self, spec: LocationSpec, entry: SparedEntry, rolled_back: bool) -> None:
        """Said for each entry and reason, and again when it was not spared for that reason for a day."""
        self._progress(spec)
        self._metrics.count_spared(spec.name, spec.path, entry.reason)
        if rolled_back:
            self._metrics.count_rollback(spec.name, spec.path)
        if self._news("spared", spec, entry.entry, entry.reason):
            holder = entry.holders[0] if entry.holders else None
            self._log.info(
                "spared",
                **_place(spec),
                entry=show(entry.entry),
                bytes=entry.bytes,
                reason=str(entry.reason),
                holder=f"{holder.name} (pid {holder.pid})" if holder is not None else None,
            )

    def failed(self, spec: LocationSpec, entry: FailedEntry) -> None:
        """An error of the filesystem; the pass goes on. Said, and recorded, as `spared` is."""
        self._progress(spec)
        self._metrics.count_error(spec.name, spec.path, entry.errno)
        told = entry.to_json()
        if self._news("failed", spec, entry.entry, entry.errno):
            # `path` is the location's here, as in all lines.
            self._log.error(
                "could not evict, skipping", **told | {"failed_path": told["path"]} | _place(spec)
            )
            self._audited(self._auditor.failed(spec, entry))

    def wanted(self, key: str) -> None:
        """Its own worker is to have a pass."""
        self._want(key)

    def refetched(self, spec: LocationSpec, size: int) -> None:
        """Counted only: an alert is for whoever watches the counter."""
        self._metrics.count_refetched(spec.name, spec.path, size)

    def finished(self, spec: LocationSpec, report: LocationReport, seconds: float) -> None:
        """One line per pass that evicted something, or that ended or failed otherwise than the last one."""
        self._metrics.count_pass(spec.name, spec.path, report.outcome, seconds)
        state = Outcome.WITHIN_LIMITS if report.outcome is Outcome.TRIMMED else report.outcome
        errors = frozenset(each.errno for each in report.failed)
        usual = (Outcome.WITHIN_LIMITS, frozenset[int]())
        changed = self._changes.changed(("outcome", spec.key), (state, errors), usual)
        for warning in report.warnings:
            if self._news("warning", spec, _kind(warning)):
                self._log.warning(warning, **_place(spec))
        if not (changed or report.evicted):
            return
        level = self._log.warning if report.outcome in _TROUBLE else self._log.info
        level(
            "pass ended",
            **_place(spec),
            outcome=str(report.outcome),
            bytes_before=report.bytes_before,
            bytes_after=report.bytes_after,
            limit_bytes=report.limit_bytes,
            evicted=len(report.evicted),
            spared=len(report.spared),
            failed=len(report.failed),
            seconds=round(seconds, 3),
            **_trouble(report),
        )

    def notice(self, text: str) -> None:
        """A sentence for people, once: what stays in the trash is found there in every pass."""
        if self._changes.once(("notice", text)):
            self._log.warning(text)

    def _news(self, what: str, spec: LocationSpec, *which: object) -> bool:
        return self._changes.news((what, spec.key, *which), self._clock.monotonic_ns(), DAY)

    def _audited(self, trouble: str | None) -> None:
        if not self._changes.changed("audit", trouble):
            return
        if trouble is not None:
            self._log.error("the audit file cannot be written, skipping", error=trouble)
        else:
            self._log.info("the audit file is written again; it tells how many lines are missing")


def _kind(warning: str) -> str:
    """What a warning is about, without the numbers and names in it, which differ from pass to pass."""
    about, colon, _ = warning.rpartition(": ")
    return re.sub(r"[0-9]+", "", about if colon else warning)


def _place(spec: LocationSpec) -> dict[str, object]:
    return {"location": spec.name, "path": show(spec.path)}


def _trouble(report: LocationReport) -> dict[str, object]:
    if report.outcome not in _TROUBLE:
        return {}
    blocked = " ".join(f"{reason}:{size}" for reason, size in sorted(report.blocked.items()))
    return {"shortfall_bytes": report.shortfall_bytes, "blocked": blocked}
