"""What is in a location, measured: all of it, or what may have changed since the last pass.

Without a source of changes each measure is a walk. With one, a location is walked when nothing is known of
it, and from then on only where a directory changed. What no directory tells is met in three ways. A
file that grows while somebody has it open: entries with a living opener are measured in each pass. A
writer that nobody counts as an opener: what differed from the measure before is measured once more, until it
is still. Whatever is left: a walk over everything, now and then.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from cachewarden import layouts
from cachewarden.clock import Clock
from cachewarden.enforce.asked import AskedTime
from cachewarden.enforce.changes import Changes
from cachewarden.enforce.journal import Journal
from cachewarden.enforce.opens import Opens, every_open_is_seen
from cachewarden.evict import TRASH_NAME
from cachewarden.inventory import Inventory, Split
from cachewarden.scan import (
    Again,
    Changed,
    Facts,
    Remembered,
    changes,
    facts_of,
    measure_again,
    remember,
    scan,
)
from cachewarden.spec import LocationSpec
from cachewarden.tree import Tree
from cachewarden_policies.globs import Globs, compile_globs
from cachewarden_policies.policy import HOUR, SECOND

Progress = Callable[[int, int], None]

# A walk over a million files costs some seconds of CPU: four in a day are a hundredth of a percent of a core.
# What a walk alone finds changes slowly (a link to a file here, made or removed elsewhere; a mode that was
# changed), and nothing is evicted on it before the entry itself was looked at.
WALK_NS = 6 * HOUR
# The coarsest times that filesystems keep: two seconds (FAT).
_TICK_NS = 2 * SECOND


@dataclass(frozen=True, slots=True)
class Demand:
    """What a split depends on, beside the tree and the time."""

    layout: str
    partial_max_idle: int | None
    keep_checkpoints: int | None


@dataclass(frozen=True, slots=True)
class Divided:
    """A split. `lasting`: it is good until a directory changes; otherwise it is made anew for each measure.

    `aside` are directories in which an interrupted eviction left something.
    """

    split: Split
    aside: frozenset[bytes]
    lasting: bool


@dataclass(frozen=True, slots=True)
class _Memory:
    demand: Demand
    divided: Divided
    remembered: Remembered
    walked_ns: int  # on the clock that never jumps

    @property
    def inventory(self) -> Inventory:
        return self.remembered.inventory


def demand_of(spec: LocationSpec) -> Demand:
    """What the configuration of a location says of its split."""
    return Demand(spec.layout, spec.policy.partial_max_idle, spec.evict_checkpoints)


def divide(root_fd: int, demand: Demand, now_ns: int) -> Divided:
    """Let the layout split what is in a location. Raises LayoutError."""
    tree = Tree(root_fd)
    time = AskedTime(now_ns)
    context = layouts.Context(
        now_ns=time, partial_max_idle=demand.partial_max_idle, keep_checkpoints=demand.keep_checkpoints
    )
    split = layouts.split(tree, demand.layout, context)
    aside = frozenset(tree.aside)
    return Divided(split, aside, lasting=not (time.asked or aside or tree.unreadable))


class Measuring:
    """Measures locations and remembers what it found. Threads may call it at once, each for its locations."""

    def __init__(self, clock: Clock, journal: Journal, seen: Changes | None, opens: Opens | None) -> None:
        self._clock = clock
        self._journal = journal
        self._changes = seen
        self._opens = opens
        self._memories: dict[str, _Memory] = {}
        self._doubted: dict[str, set[bytes]] = {}

    def inventory(self, spec: LocationSpec, root_fd: int, now_ns: int) -> Inventory:
        """What is in the location behind `root_fd`; `now_ns` is the wall clock.

        Raises LocationUnavailableError, LayoutError, OSError.
        """

        def progress(files: int, size: int) -> None:
            self._journal.measured(spec, files, size)

        if self._changes is None:
            divided = divide(root_fd, demand_of(spec), now_ns)
            found = scan(
                root_fd, divided.split, trash_names=(TRASH_NAME,), exclude=_exclude(spec), progress=progress
            )
            return replace(found, aside=divided.aside)
        dirty = self._changes.take(spec.key, root_fd)
        known = self._memories.pop(spec.key, None)  # what fails half-way is not remembered
        try:
            memory = None
            if known is not None and dirty is not None and self._is_fit(spec, known):
                memory = self._again(spec, root_fd, known, dirty, now_ns, progress)
            if memory is None:
                memory = self._walked(spec, root_fd, now_ns, progress)
        except BaseException:
            self._changes.lost(spec.key)
            raise
        self._memories[spec.key] = memory
        self._doubted.pop(spec.key, None)
        return memory.inventory

    def doubt(self, key: str, entries: Collection[bytes]) -> None:
        """These entries are not what was measured: measure them again whatever the directories say."""
        self._doubted.setdefault(key, set()).update(entries)

    def retain(self, keys: Collection[str]) -> None:
        """Forget all locations but these."""
        for key in self._memories.keys() - set(keys):
            self._memories.pop(key, None)

    def _is_fit(self, spec: LocationSpec, known: _Memory) -> bool:
        return (
            known.demand == demand_of(spec)
            and self._opens is not None
            and every_open_is_seen(self._opens, spec.key)
            and self._clock.monotonic_ns() - known.walked_ns < WALK_NS
        )

    def _walked(self, spec: LocationSpec, root_fd: int, now_ns: int, progress: Progress) -> _Memory:
        demand = demand_of(spec)
        facts = _facts(spec, root_fd)
        divided = divide(root_fd, demand, now_ns)
        begun_ns = self._clock.monotonic_ns()
        found = remember(root_fd, divided.split, facts, now_ns - _TICK_NS, progress)
        return _Memory(demand, divided, _with_aside(found, divided), begun_ns)

    def _again(
        self,
        spec: LocationSpec,
        root_fd: int,
        known: _Memory,
        dirty: frozenset[bytes],
        now_ns: int,
        progress: Progress,
    ) -> _Memory | None:
        facts = _facts(spec, root_fd)
        changed = changes(known.remembered, root_fd, dirty) if dirty else Changed()
        divided = known.divided
        if dirty or not divided.lasting:
            divided = divide(root_fd, known.demand, now_ns)
        entries = self._held(spec.key, known.inventory) | self._doubted.get(spec.key, set())
        again = Again(divided.split, changed, now_ns - _TICK_NS, frozenset(entries))
        found = measure_again(known.remembered, root_fd, facts, again, progress)
        if found is None:
            return None
        return replace(known, divided=divided, remembered=_with_aside(found, divided))

    def _held(self, key: str, inventory: Inventory) -> set[bytes]:
        """Entries that somebody may be writing to who opened them before."""
        assert self._opens is not None
        mine = self._opens.for_location(key)
        mine.drain()
        return {entry.name for entry in inventory.entries if mine.holds(entry.name)}


def _exclude(spec: LocationSpec) -> Globs | None:
    return compile_globs(spec.policy.exclude) if spec.policy.exclude else None


def _facts(spec: LocationSpec, root_fd: int) -> Facts:
    return facts_of(root_fd, (TRASH_NAME,), _exclude(spec))


def _with_aside(found: Remembered, divided: Divided) -> Remembered:
    if found.inventory.aside == divided.aside:
        return found
    return replace(found, inventory=replace(found.inventory, aside=divided.aside))
