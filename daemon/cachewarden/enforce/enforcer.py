"""The entry points of a pass: run it, look without touching, apply a plan, evict one entry."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from cachewarden.enforce import books, intents, reporting
from cachewarden.enforce.between import Between
from cachewarden.enforce.carry_out import Scene, carry_out
from cachewarden.enforce.circumstances import Mood, circumstances
from cachewarden.enforce.clockwatch import Reading
from cachewarden.enforce.delegation import Delegation
from cachewarden.enforce.scopes import filesystems, pools
from cachewarden.enforce.series import InSeries
from cachewarden.enforce.serving import evicting
from cachewarden.enforce.sightings import in_use_at_sight
from cachewarden.enforce.survey import Survey
from cachewarden.enforce.surveyor import Findings, Means, Surveyor
from cachewarden.enforce.victims import Victims
from cachewarden.enforce.work import Work
from cachewarden.errors import LocationUnavailableError
from cachewarden.evict import Evictor, LiveOpeners
from cachewarden.evict.tools import Account, account_of
from cachewarden.kernel import statfs
from cachewarden.report import LocationReport, PassReport
from cachewarden.spec import LocationSpec, Territory
from cachewarden_policies import situation
from cachewarden_policies.reasons import KeepReason
from cachewarden_policies.verdicts import Plan

# Guards that are found before anything is tried, and count as spared like those found by trying.
_BUSY = frozenset({KeepReason.IN_USE, KeepReason.LIVE_OPENER})
Narrow = Callable[[Survey], Mapping[int, KeepReason]]


@dataclass(frozen=True, slots=True)
class Orders:
    """What a pass is asked to do. `wait_ns` for locks, `requested_free` bytes by `once --free`."""

    mood: Mood = field(default_factory=Mood)
    wait_ns: int = 0
    requested_free: int = 0
    requested: bool = False  # somebody named the entry: `narrowing.requested`
    tools: bool = True  # tools may prune what is theirs; `apply` has a plan, and that has no such part
    only: str | None = None  # the pass is about locations of this name; others are looked at, for their pools


class Enforcer:
    """Runs passes. One for a process; threads may call it at once, each for locations of its own.

    `accounts` knows the user of each user id, as whom the tools of delegated caches run.
    """

    def __init__(self, means: Means, accounts: Callable[[int], Account] = account_of) -> None:
        self.means = means
        self.surveyor = Surveyor(means)
        self._between = Between()
        self._delegation = Delegation(accounts)

    def run(
        self,
        territory: Territory,
        group: Sequence[LocationSpec],
        orders: Orders,
        stop: Callable[[], bool] = lambda: False,
        narrow: Narrow = lambda _: {},
    ) -> PassReport:
        """One pass over `group`, locations that belong together (`scopes.groups`).

        What cannot be looked at is reported so and stops nothing. `narrow` adds hard guards by index,
        for a pass that may do less than another (`apply`). Raises LocationLockedError.
        """
        begun = self.means.clock.awake_ns()
        with (
            self.surveyor.surveyed(group, locked=True, wait_ns=orders.wait_ns) as findings,
            ExitStack() as stack,
        ):
            works = [self._work(found, stack, orders, findings, narrow) for found in findings.surveys]

            def again(changed: Sequence[Work]) -> Plan:
                for work in changed:
                    self._look_again(work, orders, findings, narrow)
                return self._evict(territory, works, orders, findings, stop)

            plan = again(())
            if any(work.changed for work in works) and not stop():
                # Somebody writes here: what changed under way is measured and planned anew, once.
                plan = again(works)
            pruned = self._delegate(works, plan, orders, stop)
            if pruned:
                plan = again(pruned)
                self._delegation.learn(self.means, pruned)
            seconds = (self.means.clock.awake_ns() - begun) / 1e9
            reports = [self._close(work, plan, orders, findings, seconds) for work in works]
            for spec, report in findings.missing:
                self._between.drop(spec.key)
                books.record_missing(self.means.ledger, spec, report, findings.now_ns)
                self.means.journal.finished(spec, report, seconds)
        return PassReport((*reports, *(report for _, report in findings.missing)))

    def situated(
        self,
        territory: Territory,
        findings: Findings,
        orders: Orders,
        narrow: Narrow = lambda _: {},
    ) -> situation.Situation:
        """What a plan over these findings would look at, for commands that only show."""
        locations = [self._location(each, orders, findings.time, narrow(each)) for each in findings.surveys]
        known = {location.key for location in locations}
        joint = pools(territory.pools, territory.locations)
        return situation.Situation(
            now_ns=findings.now_ns,
            sure_ns=findings.time.sure_ns,
            locations=locations,
            pools=[_within(pool, known) for pool in joint],
            filesystems=filesystems(findings.surveys, orders.requested_free),
        )

    def _work(
        self, found: Survey, stack: ExitStack, orders: Orders, findings: Findings, narrow: Narrow
    ) -> Work:
        evictor = stack.enter_context(
            Evictor(
                findings.trashes[found.spec.key],
                self.means.surroundings,
                now_ns=findings.time.sure_ns,
                clock=self.means.clock,
                lease_trusted=found.lease_trusted,
                openers=self._openers(found),
                at=self.means.at,
            )
        )
        work = Work(
            survey=found,
            evictor=evicting(evictor, found),
            victims=Victims(found, findings.now_ns),
            location=self._location(found, orders, findings.time, narrow(found)),
            numbers=tuple(range(len(found.facts))),
            bytes_before=found.inventory.bytes,
            avail_before=found.space.avail_bytes,
        )
        self._between.keep(work.location)
        return work

    def _openers(self, found: Survey) -> LiveOpeners | None:
        if self.means.opens is None:
            return None
        return InSeries(self.means.opens.for_location(found.spec.key), found.inventory)

    def _location(
        self, found: Survey, orders: Orders, time: Reading, more: Mapping[int, KeepReason]
    ) -> situation.Location:
        state = books.state_of(self.means.ledger, found.spec)
        paused = not orders.requested and self.means.ledger.paused_until(found.spec, time.sure_ns) is not None
        return situation.Location(
            key=found.spec.key,
            policy=found.spec.policy,
            usage_bytes=found.inventory.bytes,
            usage_files=found.inventory.files,
            entries=[
                replace(entry, veto=entry.veto or more[index]) if index in more else entry
                for index, entry in enumerate(found.facts)
            ],
            shares=found.shares,
            circumstances=circumstances(found, state, orders.mood, time, paused=paused),
        )

    def _look_again(self, work: Work, orders: Orders, findings: Findings, narrow: Narrow) -> None:
        """Survey a location a second time in a pass. Who was busy stays busy; who changed may go now."""
        spec = work.survey.spec
        root = work.survey.root_fd, work.survey.mount
        clock = self.means.clock
        measured_ns = clock.wall_ns()  # stamps of files are by this clock, even if it jumped just now
        changed = [name for name, reason in work.busy.items() if reason is KeepReason.CHANGED]
        self.surveyor.measuring.doubt(spec.key, changed)
        try:
            now_ns = findings.later_ns(clock.monotonic_ns())
            found = self.surveyor.survey(spec, root, findings.guards, now_ns)
        except (LocationUnavailableError, OSError):
            return  # gone meanwhile: what was found before stands, and nothing of it can be evicted
        busy = {
            index: work.busy[entry.name]
            for index, entry in enumerate(found.inventory.entries)
            if work.busy.get(entry.name, KeepReason.CHANGED) is not KeepReason.CHANGED
        }
        location = self._location(found, orders, findings.time, {**narrow(found), **busy})
        work.restart(found, Victims(found, measured_ns), location)

    def _evict(
        self,
        territory: Territory,
        works: Sequence[Work],
        orders: Orders,
        findings: Findings,
        stop: Callable[[], bool],
    ) -> Plan:
        mine = {work.key for work in works}
        joint = pools(territory.pools, territory.locations)
        wanted = {key for pool in joint for key in pool.members} - mine
        elsewhere = self._between.others(wanted)
        known = mine | {location.key for location in elsewhere}
        scene = Scene(
            time=findings.time,
            works=works,
            elsewhere=elsewhere,
            pools=[_within(pool, known) for pool in joint],
            filesystems=[
                self._between.judged(each)
                for each in filesystems([work.survey for work in works], orders.requested_free)
            ],
            intend=lambda work, verdicts, victims: intents.note(
                self.means.ledger, work, verdicts, victims, findings.now_ns
            ),
            requested=orders.requested,
        )
        plan = carry_out(scene, self.means.journal, stop, self._look_around)
        self._between.learn(scene.filesystems)
        for work in works:
            work.futile = any(each.futile for each in scene.filesystems if work.key in each.members)
        for location in elsewhere:
            if plan.of(location.key).evictions:
                self.means.journal.wanted(location.key)
        return plan

    def _delegate(
        self, works: Sequence[Work], plan: Plan, orders: Orders, stop: Callable[[], bool]
    ) -> list[Work]:
        """Let other tools prune what is theirs; where that was done."""
        asked = [
            work
            for work in works
            if orders.tools and not orders.requested and orders.only in (None, work.survey.spec.name)
        ]
        return [work for work in asked if self._delegation.run(self.means, work, plan.of(work.key), stop)]

    def _look_around(self, work: Work) -> None:
        key, opens = work.key, self.means.opens
        if opens is not None:
            for entry in work.location.entries:
                if entry.veto is KeepReason.LIVE_OPENER:
                    work.sighted[entry.name] = self.means.surroundings.name(opens.openers(key, entry.name))
        work.see(in_use_at_sight(work.survey, self.means.surroundings))

    def _close(
        self, work: Work, plan: Plan, orders: Orders, findings: Findings, seconds: float
    ) -> LocationReport:
        work.evictor.close()
        freed = statfs.usage(work.survey.root_fd).avail_bytes - work.avail_before
        complete = self.surveyor.complete(work.survey, findings.guards)
        report = reporting.of_pass(work, plan, freed, inuse_complete=complete)
        if orders.requested:
            report = reporting.of_request(report)
        for each in report.spared:
            if each.reason in _BUSY and each.entry not in work.spared:
                self.means.journal.spared(work.survey.spec, each, rolled_back=False)
        books.record_evictions(self.means.ledger, work, findings.now_ns)
        asked = orders.only in (None, work.survey.spec.name)
        if asked and not orders.requested:  # one entry by name says nothing of the location's limits
            books.record_pass(self.means.ledger, work, report, findings.now_ns)
        for notice in self.means.ledger.take_notices():
            self.means.journal.notice(notice)
        self._between.keep(work.location)
        self.means.journal.finished(work.survey.spec, report, seconds)
        return report


def _within(pool: situation.Pool, known: Collection[str]) -> situation.Pool:
    """A pool over those members that could be looked at."""
    return replace(pool, members=tuple(key for key in pool.members if key in known))
