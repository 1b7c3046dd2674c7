"""What is in a location, measured: all of it, or what may have changed since the last pass.

Without a source of changes each measure is a walk. With one, a location is walked when nothing is known of
it, and from then on only where a directory changed. What no directory tells is met in three ways. A
file that grows while somebody has it open: entries with a living opener are measured in each pass. A
writer that nobody counts as an opener: what differed from the measure before is measured once more, until it
is still. Whatever is left: a walk over everything, now and then.
"""

from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import count

from cachewarden.clock import Clock
from cachewarden.enforce.changes import Changes
from cachewarden.enforce.dividing import Demand, Divided, demand_of, divide
from cachewarden.enforce.journal import Journal
from cachewarden.enforce.measures import MeasureFiles
from cachewarden.enforce.opens import Opens, every_open_is_seen
from cachewarden.enforce.recalling import Kept, recall
from cachewarden.evict import TRASH_NAME
from cachewarden.inventory import Inventory
from cachewarden.scan import (
    Again,
    Changed,
    Facts,
    Remembered,
    Totals,
    changes,
    facts_of,
    measure_again,
    remember,
    scan,
)
from cachewarden.spec import LocationSpec
from cachewarden_policies.globs import Globs, compile_globs
from cachewarden_policies.policy import HOUR, SECOND

Progress = Callable[[int, int], None]
Recall = Callable[[LocationSpec, Totals, int], None]  # what it came to, and how many directories changed

# A walk over a million files costs some seconds of CPU: four in a day are a hundredth of a percent of a core.
# What a walk alone finds changes slowly (a link to a file here, made or removed elsewhere; a mode that was
# changed), and nothing is evicted on it before the entry itself was looked at.
WALK_NS = 6 * HOUR
# The coarsest times that filesystems keep: two seconds (FAT).
_TICK_NS = 2 * SECOND


@dataclass(frozen=True, slots=True)
class Sources:
    """Who tells what changes and who opens what, and where measures are kept; None: nobody, nowhere."""

    changes: Changes | None = None
    opens: Opens | None = None
    files: MeasureFiles | None = None


@dataclass(frozen=True, slots=True)
class _Memory:
    demand: Demand
    divided: Divided
    remembered: Remembered
    walked_ns: int  # on the clock that never jumps
    version: int  # another one whenever anything in it is another


class Measuring:
    """Measures locations and remembers what it found. Threads may call it at once, each for its locations."""

    def __init__(self, clock: Clock, journal: Journal, sources: Sources, recalled: Recall) -> None:
        """`recalled` is told of figures that an earlier process left, before they are verified."""
        self._clock = clock
        self._journal = journal
        self._on_recall = recalled
        self._changes = sources.changes
        self._opens = sources.opens
        self._kept = Kept(sources.files, clock) if sources.files is not None else None
        self._versions = count(1)
        self._memories: dict[str, _Memory] = {}
        self._doubted: dict[str, set[bytes]] = {}

    def inventory(self, spec: LocationSpec, root_fd: int, now_ns: int) -> Inventory:
        """What is in the location behind `root_fd`; `now_ns` is the wall clock.

        Raises LocationUnavailableError, LayoutError, OSError.
        """
        if self._changes is None:
            divided = divide(root_fd, demand_of(spec), now_ns)
            found = scan(
                root_fd,
                divided.split,
                trash_names=(TRASH_NAME,),
                exclude=_exclude(spec),
                progress=self._progress(spec),
            )
            return replace(found, aside=divided.aside)
        dirty = self._changes.take(spec.key, root_fd)
        known = self._memories.pop(spec.key, None)  # what fails half-way is not remembered
        try:
            memory = self._measured(spec, root_fd, known, dirty, now_ns)
        except BaseException:
            self._changes.lost(spec.key)
            raise
        self._memories[spec.key] = memory
        self._doubted.pop(spec.key, None)
        return memory.remembered.inventory

    def doubt(self, key: str, entries: Collection[bytes]) -> None:
        """These entries are not what was measured: measure them again whatever the directories say."""
        if self._changes is not None:
            self._doubted.setdefault(key, set()).update(entries)

    def retain(self, keys: Collection[str]) -> None:
        """Forget all locations but these."""
        for known in (self._memories, self._doubted):
            for key in set(known).difference(keys):  # workers add to it meanwhile
                known.pop(key, None)

    def keep(self, key: str) -> None:
        """Write what is remembered of a location, if it changed, and was not written a moment ago."""
        memory = self._memories.get(key)
        if self._kept is not None and memory is not None:
            self._kept.save(key, memory.version, memory.remembered, _more(memory, self._kept.boot))
            self._say()

    def leave(self) -> None:
        """The service ends, in order: no pass is under way, and all that was taken is measured."""
        if self._kept is not None:
            for key, memory in self._memories.items():
                if self._doubted.get(key):
                    continue
                self._kept.save(
                    key, memory.version, memory.remembered, _more(memory, self._kept.boot), last=True
                )
            self._say()

    def _measured(
        self,
        spec: LocationSpec,
        root_fd: int,
        known: _Memory | None,
        dirty: frozenset[bytes] | None,
        now_ns: int,
    ) -> _Memory:
        if known is None and self._kept is not None:
            known, moved = self._recalled(spec, root_fd, dirty)
            dirty = dirty | moved if dirty is not None else None
        if known is not None and dirty is not None and self._is_fit(spec, known):
            memory = self._again(spec, root_fd, known, dirty, now_ns)
            if memory is not None:
                return memory
        demand, facts = demand_of(spec), _facts(spec, root_fd)
        begun_ns = self._clock.monotonic_ns()
        divided = divide(root_fd, demand, now_ns)
        before = known.remembered if known is not None else None
        found = remember(root_fd, divided.split, facts, now_ns - _TICK_NS, self._progress(spec), before)
        return _Memory(demand, divided, _with_aside(found, divided), begun_ns, next(self._versions))

    def _recalled(
        self, spec: LocationSpec, root_fd: int, dirty: frozenset[bytes] | None
    ) -> tuple[_Memory | None, frozenset[bytes]]:
        """What an earlier process knew, and which directories changed since; None where it may not be used.

        Its figures are told in any case, for what they are. They may be used where every change since was
        seen: then `dirty` is known, and the process had left in order.
        """
        assert self._kept is not None
        found = recall(self._kept, spec, root_fd, _facts(spec, root_fd))
        self._say()
        if found is None:
            return None, frozenset()
        self._on_recall(spec, found.totals, len(found.changed))
        more = found.more
        if dirty is None or not found.in_order or self._opens is None:
            return None, frozenset()
        remembered = found.remembered()
        if remembered is None:
            return None, frozenset()
        # Who holds what is asked before anything is measured again.
        self._opens.index(spec.key, root_fd, remembered.inventory, spec.policy.opener_hold)
        divided = Divided(remembered.split, frozenset(), lasting=bool(more["lasting"]))
        walked_ns = int(more["walked_ns"])
        version = next(self._versions)
        return _Memory(Demand(*more["demand"]), divided, remembered, walked_ns, version), found.changed

    def _is_fit(self, spec: LocationSpec, known: _Memory) -> bool:
        return (
            known.demand == demand_of(spec)
            and self._opens is not None
            and every_open_is_seen(self._opens, spec.key)
            and self._clock.monotonic_ns() - known.walked_ns < WALK_NS
        )

    def _again(
        self, spec: LocationSpec, root_fd: int, known: _Memory, dirty: frozenset[bytes], now_ns: int
    ) -> _Memory | None:
        facts = _facts(spec, root_fd)
        before = known.remembered
        changed = changes(before, root_fd, dirty) if dirty else Changed()
        divided = known.divided
        if dirty or not divided.lasting:
            divided = divide(root_fd, known.demand, now_ns, divided, changed)
        entries = self._held(spec.key, before.inventory) | self._doubted.get(spec.key, set())
        again = Again(divided.split, changed, now_ns - _TICK_NS, frozenset(entries))
        found = measure_again(before, root_fd, facts, again, self._progress(spec))
        if found is None:
            return None
        same = found.tally is before.tally and found.split is before.split
        version = known.version if same else next(self._versions)
        return replace(known, divided=divided, remembered=_with_aside(found, divided), version=version)

    def _held(self, key: str, inventory: Inventory) -> AbstractSet[bytes]:
        """Entries that somebody may be writing to who opened them before."""
        assert self._opens is not None
        self._opens.for_location(key).drain()
        return self._opens.held(key, [entry.name for entry in inventory.entries])

    def _progress(self, spec: LocationSpec) -> Progress:
        return lambda files, size: self._journal.measured(spec, files, size)

    def _say(self) -> None:
        for notice in self._kept.take_notices() if self._kept is not None else ():
            self._journal.notice(notice)


def _more(memory: _Memory, boot: str) -> dict[str, object]:
    demand = memory.demand
    return {
        "demand": [demand.layout, demand.partial_max_idle, demand.keep_checkpoints],
        "lasting": memory.divided.lasting,
        "walked_ns": memory.walked_ns,
        "boot": boot,
    }


def _exclude(spec: LocationSpec) -> Globs | None:
    return compile_globs(spec.policy.exclude) if spec.policy.exclude else None


def _facts(spec: LocationSpec, root_fd: int) -> Facts:
    return facts_of(root_fd, (TRASH_NAME,), _exclude(spec))


def _with_aside(found: Remembered, divided: Divided) -> Remembered:
    if found.inventory.aside == divided.aside:
        return found
    return replace(found, inventory=replace(found.inventory, aside=divided.aside))
