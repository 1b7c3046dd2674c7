"""Everything put together for a command: settings, ledger, pins, passes. No service has to run."""

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from cachewarden.clock import Clock
from cachewarden.enforce.books import ABSENT, newest_pass_ns
from cachewarden.enforce.circumstances import Mood
from cachewarden.enforce.clockwatch import ClockWatch
from cachewarden.enforce.enforcer import Enforcer, Narrow, Orders
from cachewarden.enforce.finding import location_of, the_entry
from cachewarden.enforce.journal import Journal
from cachewarden.enforce.narrowing import answering, only_named, only_of, only_planned, read_plan, requested
from cachewarden.enforce.reporting import absent, of_plan
from cachewarden.enforce.scopes import groups
from cachewarden.enforce.showing import Shown, in_use, inodes_of, plan_with_leases, plan_with_look
from cachewarden.enforce.survey import Survey
from cachewarden.enforce.surveyor import Findings, Means
from cachewarden.enforce.view import Explanation, Row, explanation, rows
from cachewarden.enforce.wording import limits_in_words
from cachewarden.errors import LocationLockedError, UsageError
from cachewarden.holders import Machine
from cachewarden.ledger import LocationState, PinStore, open_ledger, read_service_state
from cachewarden.openers import Openers, Setting
from cachewarden.paths import show
from cachewarden.report import PassReport
from cachewarden.service.beside import Beside
from cachewarden.service.devices import devices
from cachewarden.service.keeping import Keeping, named
from cachewarden.service.status import LocationStatus, Status, nothing_known, refusals
from cachewarden.settings import Settings
from cachewarden.spec import LocationSpec, Territory


class House(Keeping):
    """What commands ask for. Use it in `with`, or close it."""

    def __init__(self, settings: Settings, command: str, journal: Journal, clock: Clock) -> None:
        ledger = open_ledger(settings.daemon.state_dir, clock.wall_ns())
        super().__init__(settings, clock, ledger, PinStore(settings.daemon.state_dir))
        self.journal = journal
        self.surroundings = Machine()
        # Openers that a running service knows of hold here too; without one, there is no history.
        beside = Beside(settings.daemon.runtime_dir, journal.notice)
        setting = Setting(settings.daemon.ignore_processes, ask=beside.ask)
        self._openers = Openers(clock, ledger.openers, setting)
        watch = ClockWatch(settings.daemon.interval, settings.daemon.runtime_dir, newest_pass_ns(ledger))
        self.enforcer = Enforcer(
            Means(
                ledger=ledger,
                pins=self.pins,
                clock=clock,
                surroundings=self.surroundings,
                runtime_dir=settings.daemon.runtime_dir,
                command=command,
                trusted=frozenset({0, os.geteuid()}),
                journal=journal,
                clock_watch=watch,
                opens=self._openers,
                opens_since_start=beside.knows,
            )
        )
        for notice in ledger.take_notices():
            journal.notice(notice)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._openers.stop()
        self.ledger.close()

    def sure_ns(self) -> int:
        """The earliest wall time that it may be: nothing ends by a clock that jumped."""
        watch, now_ns = self.enforcer.means.clock_watch, self.clock.wall_ns()
        return watch.look(now_ns, self.clock.monotonic_ns(), keep=False).sure_ns if watch else now_ns

    def once(
        self, *, only: str | None = None, free: int | None = None, confirmed: bool = False, wait_ns: int = 0
    ) -> PassReport:
        """One pass over all locations, or over those of one name. `free` bytes shall be free after it.

        Where a lock is held for longer than `wait_ns`, the other locations are passed over all the same;
        the report names the holder in `locked`. Raises UsageError for an unknown name.
        """
        orders = Orders(Mood(confirmed=confirmed), wait_ns, free or 0, only=only)
        mine, land = self.select(only), self.territory()
        return self._of(self._run(land, self._groups_of(mine, land), orders, _narrowed(only)), mine)

    def plan(
        self,
        *,
        only: str | None = None,
        free: int | None = None,
        confirmed: bool = False,
        probe: bool = False,
    ) -> PassReport:
        """What `once` would do now, with a verdict for every entry. Touches nothing.

        `confirmed`: what it would do without max_share. Takes no lease, unless `probe` asks for them.
        """
        orders = Orders(Mood(confirmed=confirmed), requested_free=free or 0, only=only)
        mine, land = self.select(only), self.territory()
        return self._planned(mine, land, orders, probe)

    def foresee(self, names: Collection[str]) -> PassReport:
        """What the next pass over everything would do with the locations of these names. Touches nothing."""
        land = self.territory()
        return self._planned(named(land, names), land, Orders())

    def confirmable(self, only: str) -> PassReport:
        """What a confirmed pass over the locations of one name would do now."""
        return self.plan(only=only, confirmed=True)

    def apply(self, content: Any, *, wait_ns: int = 0) -> PassReport:
        """Carry out a plan of `plan --json`, as far as it still holds. Raises as `once`, and UsageError."""
        plan = read_plan(content)
        land = self.select(None)
        known = {(spec.name, spec.path) for spec in (*land.locations, *land.missing)}
        for name, path in plan:
            if (name, path) not in known:
                raise UsageError(f"the plan has a location that is not configured: {name} at {show(path)}")
        land = replace(
            land,
            locations=tuple(spec for spec in land.locations if (spec.name, spec.path) in plan),
            missing=tuple(spec for spec in land.missing if (spec.name, spec.path) in plan),
        )
        return self._run(land, self._groups(land), Orders(wait_ns=wait_ns, tools=False), only_planned(plan))

    def evict(self, path: bytes, *, wait_ns: int = 0) -> PassReport:
        """Evict the entry at `path`, which hard guards may still hold. Raises UsageError: no such entry."""
        land = self.territory()
        spec, relative = location_of(land, path)
        with self.enforcer.surveyor.surveyed([spec]) as findings:
            found = self._found(findings, spec)
            name = found.inventory.entries[the_entry(found.inventory, relative, path)].name
        orders = Orders(Mood(confirmed=True), wait_ns, requested=True)
        return answering(self.enforcer.run(land, [requested(spec)], orders, narrow=only_named(name)), name)

    def rows(self, only: str | None = None) -> list[Row]:
        """All entries with their verdicts; what goes first comes first."""
        land = self.select(only)
        found: list[Row] = []
        for group in self._groups(land):
            with self.enforcer.surveyor.surveyed(group) as findings:
                shown = self._shown(land, findings, Orders())
                for each in findings.surveys:
                    found += self._rows(each, findings, shown)
        return sorted(found, key=by_rank)

    def explain(self, path: bytes) -> Explanation:
        """All about the entry at `path`. Raises UsageError when there is none, saying what is there."""
        land = self.territory()
        spec, relative = location_of(land, path)
        group = next((each for each in self._groups(land) if spec in each), [spec])
        with self.enforcer.surveyor.surveyed(group) as findings:
            found = self._found(findings, spec)
            index = the_entry(found.inventory, relative, path)
            shown = self._shown(land, findings, Orders())
            key = spec.key, index
            holders = in_use({key: inodes_of(found, index)}, self.surroundings).get(key, ())
            name = found.inventory.entries[index].name
            holders += self.surroundings.name(self._openers.openers(spec.key, name))
            situation = self.enforcer.situated(land, findings, Orders())
            here = next(each for each in situation.locations if each.key == spec.key)
            limits = limits_in_words(here, situation)
            row = self._rows(found, findings, shown)[index]
            return explanation(row, holders, tuple(limits), self.ledger.record(spec.key, name))

    def status(self) -> Status:
        """Each location as its last pass left it; what no pass has looked at yet is measured now."""
        land = self.territory()
        service = read_service_state(self.settings.daemon.runtime_dir)
        now_ns = self.clock.wall_ns()
        states = self.ledger.location_states()
        fresh = [spec for spec in land.locations if states.get(spec.key, nothing_known(spec)).bytes is None]
        measured = self._measure(fresh)
        located = []
        for spec in sorted((*land.locations, *land.missing), key=lambda each: (each.name, each.path)):
            state = measured.get(spec.key) or states.get(spec.key) or nothing_known(spec)
            if spec in land.missing and not spec.must_be_mount:
                state = replace(state, **ABSENT)
            located.append(
                LocationStatus(
                    spec=spec,
                    state=state,
                    missing=spec in land.missing,
                    paused_until_ns=self.ledger.paused_until(spec, now_ns),
                    next_pass_ns=service.next_pass_ns if service is not None else None,
                    watch_mode=service.watch_modes.get(spec.key, "none") if service is not None else "none",
                )
            )
        return Status(service, located, tuple(refusals(land)), self.settings.warnings)

    def _measure(self, specs: Sequence[LocationSpec]) -> dict[str, LocationState]:
        measured: dict[str, LocationState] = {}
        with self.enforcer.surveyor.surveyed(specs) as findings:
            for each in findings.surveys:
                limit = each.spec.policy.limits.max_size
                measured[each.spec.key] = replace(
                    nothing_known(each.spec),
                    layout=each.inventory.layout,
                    bytes=each.inventory.bytes,
                    files=each.inventory.files,
                    entries=len(each.inventory.entries),
                    limit_bytes=limit,
                    available=True,
                    usage_complete=each.inventory.complete,
                    inuse_complete=self._complete(each, findings),
                    recency_source=each.recency_source,
                )
            for spec, report in findings.missing:
                measured[spec.key] = replace(
                    nothing_known(spec), available=False, outcome=report.outcome, detail=report.warnings[0]
                )
        return measured

    def _planned(self, mine: Territory, land: Territory, orders: Orders, probe: bool = False) -> PassReport:
        reports = []
        for group in self._groups_of(mine, land):
            with self.enforcer.surveyor.surveyed(group) as findings:
                shown = self._shown(land, findings, orders, probe=probe)
                as_if = findings.as_if_enforced()
                then = None if as_if is None else self._shown(land, as_if, orders, probe=probe)
                located = [
                    of_plan(each, shown, then, inuse_complete=self._complete(each, findings))
                    for each in findings.surveys
                ]
                reports.append(PassReport((*located, *(report for _, report in findings.missing))))
        joined = self._of(self._joined(reports, land), mine)
        return replace(joined, in_use_checked="lease" if probe else "proc")

    def _shown(self, land: Territory, findings: Findings, orders: Orders, *, probe: bool = False) -> Shown:
        situation = self.enforcer.situated(land, findings, orders, _narrowed(orders.only))
        if probe:
            return plan_with_leases(situation, findings.surveys, self.surroundings, self.clock)
        return plan_with_look(situation, findings.surveys, self.surroundings)

    def _rows(self, found: Survey, findings: Findings, shown: Shown) -> list[Row]:
        pins = [findings.guards.pin_of(found.spec, entry) for entry in found.inventory.entries]
        return rows(found, shown.plan.of(found.spec.key), pins)

    def _complete(self, found: Survey, findings: Findings) -> bool:
        return self.enforcer.surveyor.complete(found, findings.guards)

    @staticmethod
    def _found(findings: Findings, spec: LocationSpec) -> Survey:
        for each in findings.surveys:
            if each.spec.key == spec.key:
                return each
        reasons = [report.warnings[0] for missing, report in findings.missing if missing.key == spec.key]
        raise UsageError(reasons[0] if reasons else f"{show(spec.path)}: is not there")

    def _groups_of(self, mine: Territory, land: Territory) -> list[list[LocationSpec]]:
        """The groups in which something of `mine` is: whatever shares a pool or a disk with it, too."""
        keys = {spec.key for spec in mine.locations}
        return [group for group in self._groups(land) if any(spec.key in keys for spec in group)]

    def _groups(self, land: Territory) -> list[list[LocationSpec]]:
        return groups(land, devices(land.locations))

    def _run(
        self, land: Territory, groups: Sequence[list[LocationSpec]], orders: Orders, narrow: Narrow
    ) -> PassReport:
        reports: list[PassReport] = []
        locked: list[str] = []
        for group in groups:
            try:
                reports.append(self.enforcer.run(land, group, orders, narrow=narrow))
            except LocationLockedError as error:
                locked.append(str(error))
        return replace(self._joined(reports, land), locked=tuple(locked))

    @staticmethod
    def _of(report: PassReport, land: Territory) -> PassReport:
        """The part of a report that is about the locations of `land`."""
        mine = {(spec.name, spec.path) for spec in (*land.locations, *land.missing)}
        return replace(
            report, locations=tuple(each for each in report.locations if (each.name, each.path) in mine)
        )

    @staticmethod
    def _joined(reports: Sequence[PassReport], land: Territory) -> PassReport:
        found = [each for report in reports for each in report.locations]
        found += [absent(spec) for spec in land.missing]
        return PassReport(tuple(sorted(found, key=lambda each: (each.name, each.path))))


def _narrowed(only: str | None) -> Narrow:
    return only_of(only) if only is not None else lambda _: {}


def by_rank(row: Row) -> tuple[bool, int, int, bytes]:
    """Sort key: what goes now, in its order, and then the rest, least recently used first."""
    return row.rank is None, row.rank or 0, row.last_use_ns, row.entry
