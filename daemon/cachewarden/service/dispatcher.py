"""Which worker runs which pass, and what becomes of it.

Locations are grouped by filesystem, from the mount table alone. A worker runs one pass at a time over its
whole group, because its locations share the free space; what comes due meanwhile is due once, after it.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cachewarden.clock import Clock
from cachewarden.enforce.circumstances import Mood
from cachewarden.enforce.enforcer import Enforcer, Orders
from cachewarden.errors import LocationLockedError
from cachewarden.holders import deleted_open
from cachewarden.logs import Changes, get_logger
from cachewarden.metrics import Metrics
from cachewarden.mountinfo import is_network_or_unknown, own_mounts
from cachewarden.report import PassReport
from cachewarden.service.devices import devices, mount_above
from cachewarden.service.figures import Figures
from cachewarden.service.requests import Requests
from cachewarden.service.workers import Worker
from cachewarden.spec import LocationSpec, Territory
from cachewarden.watch import Watching
from cachewarden_policies.policy import SECOND

_SILENT_SECONDS = 10.0  # a pass that shows no progress for so long: its filesystem does not answer
_LOCK_WAIT_NS = 5 * SECOND


@dataclass(frozen=True, slots=True)
class Organs:
    """What passes of the service need. `news` wakes the main loop: there is something to tell."""

    enforcer: Enforcer
    clock: Clock
    metrics: Metrics
    figures: Figures
    watching: Watching
    quiet: Callable[[int], bool]
    blinded: Callable[[], bool]
    stopping: threading.Event
    news: Callable[[], None]


class Dispatcher:
    """Keeps the workers. Its methods are the main loop's; `heard`, `want` and `changed` are everybody's."""

    def __init__(self, organs: Organs, settle_ns: int) -> None:
        self.organs = organs
        self._log = get_logger()
        self._said = Changes()
        self.requests = Requests(settle_ns)
        self._territory = Territory()
        self._group_of: dict[str, str] = {}
        self._workers: dict[str, Worker] = {}

    @property
    def territory(self) -> Territory:
        """The locations in force."""
        return self._territory

    def take(self, territory: Territory) -> None:
        """The locations in force are these now; new ones want a pass at once."""
        before = set(self._group_of)
        self._territory = territory
        self._group_of = {key: group.decode() for key, group in devices(territory.locations).items()}
        groups = set(self._group_of.values())
        self.organs.enforcer.surveyor.retain(self._group_of)
        self.requests.forget(groups)
        for gone in self._workers.keys() - groups:
            self._workers.pop(gone).end()
        for key in before - self._group_of.keys():
            self.organs.watching.unwatch(key)
        for key in self._group_of.keys() - before:
            self.requests.wanted(self._group_of[key], self.organs.clock.monotonic_ns())

    def want_all(self) -> None:
        """A pass over everything is due."""
        for group in set(self._group_of.values()):
            if self._busy(group):
                self.organs.metrics.count_late()
            self.requests.wanted(group, self.organs.clock.monotonic_ns())

    def want(self, key: str) -> None:
        """A pass over a location is due, because a pool asks for it."""
        if key in self._group_of:
            self.requests.wanted(self._group_of[key], self.organs.clock.monotonic_ns())

    def changed(self, key: str) -> bool:
        """Something changed in a location; whether `next_seconds` has to be asked again for that."""
        group = self._group_of.get(key)
        return group is not None and self.requests.changed(group, self.organs.clock.monotonic_ns())

    def next_seconds(self, most: float) -> float:
        """How long there is nothing to begin, if nothing else happens; `most` at most."""
        due_ns = self.requests.next_ns(self._busy_groups())
        if due_ns is None:
            return most
        return min(most, max(0.0, (due_ns - self.organs.clock.monotonic_ns()) / SECOND))

    def turn(self) -> None:
        """Begin the passes that are due and whose workers are free."""
        for group in self.requests.take_due(self.organs.clock.monotonic_ns(), self._busy_groups()):
            specs = [spec for spec in self._territory.locations if self._group_of.get(spec.key) == group]
            worker = self._workers.get(group) or Worker(group, self._crashed, self.organs.clock.awake_ns)
            self._workers[group] = worker
            if not worker.offer(lambda group=group, specs=specs: self._pass(group, specs)):  # type: ignore[misc]
                self.requests.wanted(group, self.organs.clock.monotonic_ns())  # right after this one

    def heard(self, spec: LocationSpec) -> None:
        """A pass over a location made progress. Called from its worker."""
        worker = self._workers.get(self._group_of.get(spec.key, ""))
        if worker is not None:
            worker.alive()

    def silent(self) -> list[str]:
        """Keys of the locations whose worker hangs."""
        hung = {group for group, worker in self._workers.items() if worker.silent_for() > _SILENT_SECONDS}
        return [key for key, group in self._group_of.items() if group in hung]

    def end(self, seconds: float) -> bool:
        """Wait for passes under way, which were told to stop; whether all ended."""
        for worker in self._workers.values():
            worker.end()
        share = seconds / max(1, len(self._workers))
        ended = [worker.join(share) for worker in self._workers.values()]  # each gets its time
        return all(ended)

    def _busy(self, group: str) -> bool:
        worker = self._workers.get(group)
        return worker is not None and worker.busy

    def _busy_groups(self) -> list[str]:
        return [group for group, worker in self._workers.items() if worker.busy]

    def _pass(self, group: str, specs: Sequence[LocationSpec]) -> None:
        organs, clock = self.organs, self.organs.clock
        begun = clock.awake_ns()
        self._watch(specs)
        organs.news()  # how well they are watched is known from here on, and not only when the pass ends
        mood = Mood(quiet=organs.quiet(clock.wall_ns()), blinded=organs.blinded())
        try:
            report = organs.enforcer.run(
                self._territory,
                specs,
                Orders(mood, _LOCK_WAIT_NS),
                lambda: organs.stopping.is_set() or self._taken_back(specs),
            )
        except LocationLockedError as error:
            # A command is at work there. That is no failure: we come back when it is done.
            if self._said.changed(("locked", group), str(error)):
                self._log.info("a pass waits", filesystem=group, reason=str(error))
            self.requests.wanted(group, clock.monotonic_ns())
            return
        finally:
            self.requests.finished(group, clock.awake_ns() - begun, clock.monotonic_ns())
        self._said.forget(("locked", group))
        self._take(specs, report, clock.wall_ns())

    def _taken_back(self, specs: Sequence[LocationSpec]) -> bool:
        """Whether one of these locations only reports by now, or is none any more: it loses nothing more.

        Any other change waits for the next pass, which a reload has asked for.
        """
        still = {spec.key for spec in self._territory.locations if spec.enforce}
        return any(spec.enforce and spec.key not in still for spec in specs)

    def _take(self, specs: Sequence[LocationSpec], report: PassReport, now_ns: int) -> None:
        by_place = {(spec.name, spec.path): spec for spec in specs}
        for each in report.locations:
            self.organs.figures.took(by_place[each.name, each.path], each, now_ns)
        rooms = {each.gauges.room.dev: each.gauges.room.point for each in report.locations if each.gauges}
        if rooms:
            ghosts = deleted_open(rooms.keys())
            self.organs.figures.set_ghosts({rooms[dev]: size for dev, size in ghosts.items()})

    def _watch(self, specs: Sequence[LocationSpec]) -> None:
        """Watch, before anything is measured, so that what appears in between is noticed."""
        table = own_mounts()
        for spec in specs:
            if is_network_or_unknown(mount_above(table, spec.path).fstype):
                continue  # the kernel sees nothing there of what other machines do
            self.organs.watching.watch(spec.key, spec.path)
        warning = self.organs.watching.warning
        if self._said.changed("watch", warning) and warning is not None:
            self._log.warning(warning)

    def _crashed(self, group: str, error: BaseException) -> None:
        self._log.error("a pass ended by a bug of ours, please report it", filesystem=group, exc_info=error)
        for spec in self._territory.locations:
            if self._group_of.get(spec.key) == group:
                self.organs.figures.crashed(spec, self.organs.clock.wall_ns())
