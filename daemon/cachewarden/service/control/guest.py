"""The house as one request sees it: the running service's own ledger, pins and openers, and its territory."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cachewarden.enforce.circumstances import Mood
from cachewarden.enforce.enforcer import Enforcer, Narrow, Orders
from cachewarden.enforce.finding import the_entry
from cachewarden.enforce.journal import Journal
from cachewarden.enforce.narrowing import answering, only_owned, requested
from cachewarden.enforce.showing import Shown
from cachewarden.enforce.survey import Survey
from cachewarden.enforce.surveyor import Findings, Means
from cachewarden.errors import LocationLockedError, ServiceRefusedError
from cachewarden.holders import Machine
from cachewarden.ledger import LocationState
from cachewarden.openers import Openers
from cachewarden.paths import show
from cachewarden.report import EvictedEntry, FailedEntry, PassReport, SparedEntry
from cachewarden.service.dispatcher import Dispatcher, Organs
from cachewarden.service.house import House
from cachewarden.service.keeping import Keeping
from cachewarden.service.status import Status
from cachewarden.settings import Settings
from cachewarden.spec import LocationSpec, Territory

Owners = dict[tuple[str, bytes], dict[bytes, int]]  # by location's name and path, by entry


class _Errand(Journal):
    """What the service's chronicle hears of a pass that somebody asked for: what went, and not how it ended.

    Whether a location is within its limits is the business of passes that look at limits.
    """

    def __init__(self, chronicle: Journal) -> None:
        self._chronicle = chronicle

    def evicted(self, spec: LocationSpec, entry: EvictedEntry) -> None:
        self._chronicle.evicted(spec, entry)

    def spared(self, spec: LocationSpec, entry: SparedEntry, rolled_back: bool) -> None:
        self._chronicle.spared(spec, entry, rolled_back)

    def failed(self, spec: LocationSpec, entry: FailedEntry) -> None:
        self._chronicle.failed(spec, entry)

    def wanted(self, key: str) -> None:
        self._chronicle.wanted(key)

    def notice(self, text: str) -> None:
        self._chronicle.notice(text)


@dataclass(frozen=True, slots=True)
class Host:
    """The running service, as requests need it. `settings` gives those in force."""

    dispatcher: Dispatcher
    settings: Callable[[], Settings]

    @property
    def organs(self) -> Organs:
        """What its passes need."""
        return self.dispatcher.organs

    @property
    def land(self) -> Territory:
        """The locations in force."""
        return self.dispatcher.territory

    @property
    def openers(self) -> Openers:
        """Who sees opens."""
        found = self.organs.enforcer.means.opens
        assert isinstance(found, Openers)
        return found

    @property
    def means(self) -> Means:
        """For an enforcer of requests' own: what passes remember between them is theirs alone."""
        means = self.organs.enforcer.means
        return replace(
            means, changes=None, measures=None, journal=_Errand(means.journal), command="a request"
        )


class Guest(House):
    """Made for one request. `group`: keys of the locations that may be looked at (one filesystem's).

    `owners` are those of the entries that were looked at so far.
    """

    def __init__(self, host: Host, enforcer: Enforcer, group: Sequence[str] = ()) -> None:
        # Not as a command begins: ledger and openers are there already, and must not be closed.
        settings, self._land = host.settings(), host.land
        Keeping.__init__(self, settings, host.organs.clock, enforcer.means.ledger, enforcer.means.pins)
        self.journal = enforcer.means.journal
        self.surroundings = Machine()
        self.enforcer = enforcer
        self.owners: Owners = {}
        self._host = host
        self._openers = host.openers
        self._group = frozenset(group)

    def territory(self) -> Territory:
        """What the service has found: looking for it here would ask disks that may not answer."""
        return self._land

    def status(self) -> Status:
        """From memory and ledger alone: nothing is measured for it."""
        silent = set(self._host.dispatcher.silent())
        found = super().status()
        located = [
            replace(each, state=replace(each.state, available=False)) if each.spec.key in silent else each
            for each in found.locations
        ]
        return replace(found, locations=located)

    @contextmanager
    def surveyed(self, spec: LocationSpec) -> Iterator[Survey]:
        """One location as it is now. Raises UsageError where it cannot be looked at."""
        with self.enforcer.surveyor.surveyed([spec]) as findings:
            yield self._found(findings, spec)

    def evict_for(self, spec: LocationSpec, path: bytes, uid: int | None, wait_ns: int) -> PassReport:
        """As `evict`, and only what this user owns (None: whoever owns it), now and when it goes.

        Raises UsageError as `evict`; ServiceRefusedError for what is somebody else's.
        """
        relative = path[len(spec.path) + 1 :]
        with self.enforcer.surveyor.surveyed([spec]) as findings:
            found = self._found(findings, spec)
            entry = found.inventory.entries[the_entry(found.inventory, relative, path)]
            self._note(findings)
        if uid is not None and entry.owner != uid:
            raise ServiceRefusedError(f"{show(path)}: is not yours", 404)
        organs = self._host.organs
        orders = Orders(Mood(confirmed=True, blinded=organs.blinded()), wait_ns, requested=True)
        narrow = only_owned(entry.name, uid)
        report = self.enforcer.run(self._land, [requested(spec)], orders, organs.stopping.is_set, narrow)
        self.journal.wanted(spec.key)  # its figures are others now
        return answering(report, entry.name)

    def _measure(self, specs: Sequence[LocationSpec]) -> dict[str, LocationState]:  # noqa: ARG002
        return {}

    def _shown(self, land: Territory, findings: Findings, orders: Orders, *, probe: bool = False) -> Shown:
        self._note(findings)
        return super()._shown(land, findings, orders, probe=probe)

    def _note(self, findings: Findings) -> None:
        for each in findings.surveys:
            owned = {entry.name: entry.owner for entry in each.inventory.entries}
            self.owners[each.spec.name, each.spec.path] = owned

    def _groups(self, land: Territory) -> list[list[LocationSpec]]:
        return [group for group in super()._groups(land) if any(spec.key in self._group for spec in group)]

    def _run(
        self, land: Territory, groups: Sequence[list[LocationSpec]], orders: Orders, narrow: Narrow
    ) -> PassReport:
        reports: list[PassReport] = []
        locked: list[str] = []
        stop = self._host.organs.stopping.is_set
        orders = replace(orders, mood=replace(orders.mood, blinded=self._host.organs.blinded()))
        for group in groups:
            try:
                reports.append(self.enforcer.run(land, group, orders, stop, narrow))
            except LocationLockedError as error:
                locked.append(str(error))
        return replace(self._joined(reports, land), locked=tuple(locked))
