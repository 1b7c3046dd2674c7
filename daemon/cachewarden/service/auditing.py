"""What goes into the audit file, whoever evicts: the service, or a command beside it."""

import os

from cachewarden.clock import Clock
from cachewarden.enforce.journal import Journal, Relay
from cachewarden.logs import AuditFile
from cachewarden.paths import show
from cachewarden.report import EvictedEntry, FailedEntry, iso
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


class Audited(Relay):
    """A command's journal, whose evictions also go into the audit file."""

    def __init__(self, journal: Journal, auditor: Auditor) -> None:
        super().__init__(journal)
        self._auditor = auditor
        self._trouble: str | None = None

    def evicted(self, spec: LocationSpec, entry: EvictedEntry) -> None:
        """Passed on, and recorded."""
        super().evicted(spec, entry)
        self._say(self._auditor.evicted(spec, entry))

    def failed(self, spec: LocationSpec, entry: FailedEntry) -> None:
        """Passed on, and recorded."""
        super().failed(spec, entry)
        self._say(self._auditor.failed(spec, entry))

    def _say(self, trouble: str | None) -> None:
        if trouble is not None and trouble != self._trouble:
            self.notice(trouble)
        self._trouble = trouble
