"""Who wants to hear of a pass while it runs: the service's log and counters, a command's progress."""

from cachewarden.report import EvictedEntry, FailedEntry, LocationReport, SparedEntry
from cachewarden.scan import Totals
from cachewarden.spec import LocationSpec


class Journal:
    """Told of each thing once, when it has happened; this one does not listen.

    What a subclass hears must not make it raise, nor take long.
    """

    def measured(self, spec: LocationSpec, files: int, size: int) -> None:
        """A walk goes on: files and bytes so far."""

    def recalled(self, spec: LocationSpec, totals: Totals, changed: int) -> None:
        """What a location came to when an earlier process of ours left; so many directories changed since.

        Not verified: files may have grown where they are.
        """

    def planned(self, spec: LocationSpec, size: int) -> None:
        """A plan that is carried out now means to take so many bytes off the location."""

    def evicted(self, spec: LocationSpec, entry: EvictedEntry) -> None:
        """An entry is gone."""

    def spared(self, spec: LocationSpec, entry: SparedEntry, rolled_back: bool) -> None:
        """An entry that would have gone, or might have, turned out to be busy or changed."""

    def failed(self, spec: LocationSpec, entry: FailedEntry) -> None:
        """The filesystem refused; the pass goes on."""

    def wanted(self, key: str) -> None:
        """A pool asks something of a location (by key) that this pass does not hold."""

    def refetched(self, spec: LocationSpec, size: int) -> None:
        """So many bytes came back within days of their eviction."""

    def finished(self, spec: LocationSpec, report: LocationReport, seconds: float) -> None:
        """The pass over a location ended."""

    def notice(self, text: str) -> None:
        """A sentence for people: a ledger that was set aside, a trash that was recovered."""


class Relay(Journal):
    """Tells another journal everything; a subclass does more with some of it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

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
        """Passed on."""
        self._journal.evicted(spec, entry)

    def spared(self, spec: LocationSpec, entry: SparedEntry, rolled_back: bool) -> None:
        """Passed on."""
        self._journal.spared(spec, entry, rolled_back)

    def failed(self, spec: LocationSpec, entry: FailedEntry) -> None:
        """Passed on."""
        self._journal.failed(spec, entry)

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
