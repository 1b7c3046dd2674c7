"""What goes into the audit file, whoever evicts: the service, or a command beside it."""

import os

from cachewarden.clock import Clock
from cachewarden.enforce.journal import Journal
from cachewarden.logs import AuditFile
from cachewarden.paths import show
from cachewarden.report import EvictedEntry, FailedEntry, LocationReport, SparedEntry, iso
from cachewarden.scan import Totals
from cachewarden.spec import LocationSpec


class Auditor:
    """Writes records. `file` is None where none is configured; `by` names the command that we are."""

    def __init__(self, clock: Clock, by: str, file: AuditFile | None = None) -> None:
        self.file = file
        self._clock = clock
        self._by = by

    def evicted(self, spec: LocationSpec, entry: EvictedEntry) -> str | None:
        """An entry is gone. What went wrong with the file, or None."""
        return self._write("evicted", spec, entry.to_json())

    def failed(self, spec: LocationSpec, entry: FailedEntry) -> str | None:
        """An entry was to go, and the filesystem refused. What went wrong with the file, or None."""
        told = entry.to_json()
        return self._write("failed", spec, told | {"failed_path": told["path"]})

    def _write(self, event: str, spec: LocationSpec, told: dict[str, object]) -> str | None:
        if self.file is None:
            return None
        who = {"by": self._by, "uid": os.getuid()}
        when = {"time": iso(self._clock.wall_ns()), "event": event}
        return self.file.write(when | who | told | {"location": spec.name, "path": show(spec.path)})


class Audited(Journal):
    """A command's journal, whose evictions also go into the audit file."""

    def __init__(self, journal: Journal, auditor: Auditor) -> None:
        self._journal = journal
        self._auditor = auditor
        self._trouble: str | None = None

    def measured(self, spec: LocationSpec, files: int, size: int) -> None:
        """Passed on."""
        self._journal.measured(spec, files, size)

    def recalled(self, spec: LocationSpec, totals: Totals, changed: int) -> None:
        """Passed on."""
        self._journal.recalled(spec, totals, changed)

    def planned(self, spec: LocationSpec, size: int) -> None:
        """Passed on."""
        self._journal.planned(spec, size)

    def evicted(self, spec: LocationSpec, entry: EvictedEntry) -> None:
        """Passed on, and recorded."""
        self._journal.evicted(spec, entry)
        self._say(self._auditor.evicted(spec, entry))

    def spared(self, spec: LocationSpec, entry: SparedEntry, rolled_back: bool) -> None:
        """Passed on."""
        self._journal.spared(spec, entry, rolled_back)

    def failed(self, spec: LocationSpec, entry: FailedEntry) -> None:
        """Passed on, and recorded."""
        self._journal.failed(spec, entry)
        self._say(self._auditor.failed(spec, entry))

    def wanted(self, key: str) -> None:
        """Passed on."""
        self._journal.wanted(key)

    def refetched(self, spec: LocationSpec, size: int) -> None:
        """Passed on."""
        self._journal.refetched(spec, size)

    def finished(self, spec: LocationSpec, report: LocationReport, seconds: float) -> None:
        """Passed on."""
        self._journal.finished(spec, report, seconds)

    def notice(self, text: str) -> None:
        """Passed on."""
        self._journal.notice(text)

    def _say(self, trouble: str | None) -> None:
        if trouble is not None and trouble != self._trouble:
            self._journal.notice(trouble)
        self._trouble = trouble
