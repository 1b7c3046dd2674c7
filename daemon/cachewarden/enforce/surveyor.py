"""Looking at a group of locations: their locks, what a killed process left, a survey of each."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from cachewarden.clock import Clock
from cachewarden.enforce import reporting
from cachewarden.enforce.changes import Changes
from cachewarden.enforce.clockwatch import ClockWatch, Reading
from cachewarden.enforce.guards import Guards, inuse_complete, lease_trusted
from cachewarden.enforce.intents import settle
from cachewarden.enforce.journal import Journal
from cachewarden.enforce.judging import Bench, Judgement
from cachewarden.enforce.measures import MeasureFiles
from cachewarden.enforce.measuring import Measuring, Sources
from cachewarden.enforce.opens import Opens, record_news, with_openers
from cachewarden.enforce.sightings import Surroundings
from cachewarden.enforce.survey import Survey, opened, survey
from cachewarden.errors import LayoutError, LocationAbsentError, LocationUnavailableError, PinsUnreadableError
from cachewarden.evict import Recovered, Trash, directories_beside, left_at_the_top, recover
from cachewarden.ledger import Ledger, PinStore
from cachewarden.locks import location_lock, lock_path
from cachewarden.mountinfo import Mount, foreign_mounts
from cachewarden.report import LocationReport
from cachewarden.scan import Totals
from cachewarden.spec import LocationSpec
from cachewarden_policies.reasons import Outcome

Rooted = tuple[LocationSpec, tuple[int, Mount]]


def _never(key: str) -> bool:  # noqa: ARG001 - the interface's
    return False


def nothing_to_do(step: str) -> None:
    """Nobody interferes."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a pass needs of the world. `trusted` are the users whose links on the way are followed.

    `clock_watch` doubts the clock, None: nobody does. `opens` sees opens; None where nobody asks for them.
    `opens_since_start`: whether it was there all the time in the location of this key, so that "no living
    process opened it" is knowledge; asked after the location was looked at.
    `changes` sees what changes in locations; None where nobody does, and each pass walks. `measures` keeps
    what was measured for the next start. `at` is called between the steps of evictions, see `Evictor`: a
    place for tests to interfere and to measure.
    """

    ledger: Ledger
    pins: PinStore
    clock: Clock
    surroundings: Surroundings
    runtime_dir: bytes
    command: str
    trusted: frozenset[int] = frozenset({0})
    journal: Journal = field(default_factory=Journal)
    clock_watch: ClockWatch | None = None
    opens: Opens | None = None
    opens_since_start: Callable[[str], bool] = _never
    changes: Changes | None = None
    measures: MeasureFiles | None = None
    at: Callable[[str], None] = nothing_to_do


@dataclass(frozen=True, slots=True)
class Findings:
    """Surveys of locations, and reports of those that could not be looked at. Valid while open.

    `time` was read once for all of them, when the clock that never jumps showed `begun_ns`.
    """

    surveys: tuple[Survey, ...]
    missing: tuple[tuple[LocationSpec, LocationReport], ...]
    guards: Guards
    trashes: Mapping[str, Trash]  # by key; empty when nothing is locked
    time: Reading
    begun_ns: int = 0

    def as_if_enforced(self) -> "Findings | None":
        """The same with all locations enforced; None where they are."""
        if all(each.spec.enforce for each in self.surveys):
            return None
        surveys = (replace(each, spec=replace(each.spec, enforce=True)) for each in self.surveys)
        return replace(self, surveys=tuple(surveys))

    @property
    def now_ns(self) -> int:
        """The wall clock's time, as it is kept and shown."""
        return self.time.wall_ns

    def later_ns(self, monotonic_ns: int) -> int:
        """The same time later in the pass, whatever the wall clock did meanwhile."""
        return self.now_ns + monotonic_ns - self.begun_ns


class Surveyor:
    """Surveys locations, for passes (with their locks) and for commands that only show (without)."""

    def __init__(self, means: Means) -> None:
        self.means = means
        sources = Sources(means.changes, means.opens, means.measures)
        self._judged: dict[str, Judgement] = {}
        self.measuring = Measuring(means.clock, means.journal, sources, self._recalled)

    @contextmanager
    def surveyed(
        self, group: Sequence[LocationSpec], *, locked: bool = False, wait_ns: int = 0
    ) -> Iterator[Findings]:
        """Survey `group`; the surveys' descriptors are open, and their locks held, within the block."""
        begun_ns = self.means.clock.monotonic_ns()
        time = self._time(begun_ns, keep=locked)
        now_ns = time.wall_ns
        guards = self._guards(time)
        surveys: list[Survey] = []
        missing: list[tuple[LocationSpec, LocationReport]] = []
        with ExitStack() as stack:
            roots: list[Rooted] = []
            for spec in group:
                try:
                    roots.append((spec, stack.enter_context(opened(spec, self.means.trusted))))
                except LocationAbsentError:
                    missing.append((spec, reporting.absent(spec)))
                except LocationUnavailableError as error:
                    missing.append((spec, reporting.missing(spec, str(error))))
            trashes: dict[str, Trash] = {}
            if locked:
                roots = self._lock(stack, roots, missing, wait_ns)
            for spec, root in roots:
                try:
                    if locked:
                        self._mend(spec, time)
                        trashes[spec.key] = stack.enter_context(Trash(root[0], spec.path))
                        found = self._taken_up(spec, root, trashes[spec.key], guards, now_ns)
                    else:
                        found = self.survey(spec, root, guards, now_ns)
                    surveys.append(found)
                except LocationUnavailableError as error:
                    missing.append((spec, reporting.missing(spec, f"{spec.name}: {error}")))
                except (OSError, LayoutError) as error:
                    missing.append((spec, reporting.missing(spec, f"{spec.name}: {error}", Outcome.FAILED)))
            yield Findings(tuple(surveys), tuple(missing), guards, trashes, time, begun_ns)
            for spec, _ in roots:
                self.measuring.keep(spec.key)

    def _lock(
        self,
        stack: ExitStack,
        roots: list[Rooted],
        missing: list[tuple[LocationSpec, LocationReport]],
        wait_ns: int,
    ) -> list[Rooted]:
        """Take the locks of all locations, in one order everywhere: nobody waits in a circle.

        Returns those that could be locked; raises LocationLockedError for one that somebody holds.
        """
        held: set[bytes] = set()
        kept: list[Rooted] = []
        for spec, root in sorted(roots, key=lambda each: self._lock_path(each[1][0])):
            lock = self._lock_path(root[0])
            try:
                if lock not in held:  # two names of one directory share a lock
                    stack.enter_context(
                        location_lock(
                            lock, command=self.means.command, clock=self.means.clock, wait_ns=wait_ns
                        )
                    )
                held.add(lock)
                kept.append((spec, root))
            except LocationUnavailableError as error:
                missing.append((spec, reporting.missing(spec, str(error), Outcome.FAILED)))
        return kept

    def _lock_path(self, root_fd: int) -> bytes:
        found = os.fstat(root_fd)
        return lock_path(self.means.runtime_dir, found.st_dev, found.st_ino)

    def _time(self, begun_ns: int, *, keep: bool) -> Reading:
        wall_ns, watch = self.means.clock.wall_ns(), self.means.clock_watch
        if watch is None:
            return Reading.plain(wall_ns)
        time = watch.look(wall_ns, begun_ns, keep=keep)
        if time.suspect:
            self.means.journal.notice(time.sentence)
        return time

    def _mend(self, spec: LocationSpec, time: Reading) -> None:
        if self.means.clock_watch is not None and not time.suspect:
            count = self.means.ledger.bring_back(spec.key, time.wall_ns)
            if count:
                self.means.journal.notice(
                    f"{spec.name}: {count} times on record lay ahead of the clock and count as now"
                )

    def _guards(self, time: Reading) -> Guards:
        mounts = foreign_mounts()
        try:
            pins = self.means.pins.load(time.wall_ns)
        except PinsUnreadableError as error:
            self.means.journal.notice(f"{error}: everything counts as pinned")
            return Guards(None, mounts, time.sure_ns)
        for notice in pins.notices:
            self.means.journal.notice(notice)
        return Guards(tuple(pins.active(time.sure_ns)), mounts, time.sure_ns)

    def survey(self, spec: LocationSpec, root: tuple[int, Mount], guards: Guards, now_ns: int) -> Survey:
        """Survey one location whose root is open. Raises as `Measuring.inventory`."""
        opens = self.means.opens
        if opens is not None:
            record_news(self.means.ledger, opens, spec, now_ns)
        inventory = self.measuring.inventory(spec, root[0], min(now_ns, guards.sure_ns))
        bench = Bench(guards, now_ns, self._judged.get(spec.key))
        found = survey(spec, root, self.means.ledger, bench, inventory)
        self._judged[spec.key] = found.judged
        if found.refetched_bytes:
            self.means.journal.refetched(spec, found.refetched_bytes)
        if opens is None:
            return found
        seen = with_openers(found, opens, self.means.ledger, now_ns)
        # A command that began a moment ago can see opens, and saw none of those before it.
        return replace(seen, opens_seen=seen.opens_seen and self.means.opens_since_start(spec.key))

    def retain(self, keys: Collection[str]) -> None:
        """These are all locations: forget what was measured and judged in others."""
        self.measuring.retain(keys)
        for key in set(self._judged).difference(keys):  # workers add to it meanwhile
            self._judged.pop(key, None)

    def _recalled(self, spec: LocationSpec, totals: Totals, changed: int) -> None:
        """Figures of an earlier process are shown at once, and for what they are: not verified."""
        self.means.ledger.update_location(
            spec,
            self.means.clock.wall_ns(),
            bytes=totals.bytes,
            files=totals.files,
            entries=totals.entries,
            usage_complete=False,
        )
        self.means.journal.recalled(spec, totals, changed)

    def complete(self, survey: Survey, guards: Guards) -> bool:
        """Whether "nobody uses it" can be known in a location: of this moment, and of who may come back."""
        return survey.opens_seen and inuse_complete(survey.spec, survey.mount, guards)

    def _taken_up(
        self, spec: LocationSpec, root: tuple[int, Mount], trash: Trash, guards: Guards, now_ns: int
    ) -> Survey:
        """The survey of a location in which what a killed process left is finished, back, and booked."""
        searched = {b""}
        if left_at_the_top(root[0]) or self.means.ledger.intents.of(spec.key):
            searched = directories_beside(root[0])
        left = self._recover(spec, root, trash, searched)
        found = self.survey(spec, root, guards, now_ns)
        if found.inventory.aside - searched:  # and the ledger did not know
            left += self._recover(spec, root, trash, directories_beside(root[0]))
            found = self.survey(spec, root, guards, now_ns)
        for notice in settle(self.means.ledger, spec, root[0], left, now_ns):
            self.means.journal.notice(notice)
        return found

    def _recover(
        self,
        spec: LocationSpec,
        root: tuple[int, Mount],
        trash: Trash,
        directories: Iterable[bytes],
    ) -> list[Recovered]:
        """Finish or take back what a killed process left."""
        found = recover(trash, directories, lease_trusted=lease_trusted(root[1]))
        for each in found:
            self.means.journal.notice(f"{spec.name}: found in the trash: {each.sentence}")
        return found
