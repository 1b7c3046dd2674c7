"""Measuring places as a pass would, without remembering anything, and planning over them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cachewarden.clock import Clock
from cachewarden.discover.judging import objection
from cachewarden.discover.places import Place
from cachewarden.enforce.dividing import demand_of, divide
from cachewarden.enforce.guards import Guards
from cachewarden.enforce.journal import Journal
from cachewarden.enforce.judging import Bench
from cachewarden.enforce.scopes import filesystems
from cachewarden.enforce.survey import Survey, opened, survey
from cachewarden.evict import TRASH_NAME
from cachewarden.inventory import Inventory
from cachewarden.ledger import Record, Seen
from cachewarden.mountinfo import foreign_mounts
from cachewarden.scan import scan
from cachewarden.spec import LocationSpec
from cachewarden_policies import situation
from cachewarden_policies.globs import compile_globs
from cachewarden_policies.planning import make_plan

_NOBODY: frozenset[int] = frozenset()  # places have no links on the way; one that appears is not followed


class NoMemory:
    """Takes the ledger's place: remembers nothing, so that everything was there before us."""

    def seen(
        self,
        location: LocationSpec,  # noqa: ARG002
        entries: Iterable[tuple[bytes, int]],
        now_ns: int,
        *,
        complete: bool = True,  # noqa: ARG002
        formerly: Mapping[bytes, bytes] | None = None,  # noqa: ARG002
    ) -> Seen:
        """A record without a past for each entry."""
        return Seen({name: Record(now_ns, False, size) for name, size in entries})


@dataclass(slots=True)
class Measuring:
    """One look at all places, at one moment. `journal` is told how far it is; it may raise to end it."""

    clock: Clock
    journal: Journal
    over: Callable[[LocationSpec], None]
    now_ns: int = field(init=False)
    guards: Guards = field(init=False)

    def __post_init__(self) -> None:
        self.now_ns = self.clock.wall_ns()
        self.guards = Guards((), foreign_mounts(), self.now_ns)

    def objection(self, place: Place, spec: LocationSpec) -> str | None:
        """Why a place is not proposed, before it is measured. Raises as `survey`."""
        with opened(spec, _NOBODY) as (root_fd, _):
            split = divide(root_fd, demand_of(spec), self.now_ns).split
            return objection(place, split.layout, split.claims)

    def survey(self, spec: LocationSpec) -> Survey:
        """Measure a place. Raises LocationUnavailableError, LayoutError, OSError.

        The survey's root is closed: only its figures may be used.
        """
        try:
            with opened(spec, _NOBODY) as root:
                bench = Bench(self.guards, self.now_ns)
                return survey(spec, root, NoMemory(), bench, self._walk(spec, root[0]))
        finally:
            self.over(spec)

    def _walk(self, spec: LocationSpec, root_fd: int) -> Inventory:
        exclude = spec.policy.exclude
        return scan(
            root_fd,
            divide(root_fd, demand_of(spec), self.now_ns).split,
            trash_names=(TRASH_NAME,),
            exclude=compile_globs(exclude) if exclude else None,
            progress=lambda files, size: self.journal.measured(spec, files, size),
        )


def would_free(surveys: Sequence[Survey], now_ns: int) -> dict[str, int]:
    """Bytes that the disk would get back from each location, by key, if its policy were enforced now.

    As a confirmed pass would: `max_share` is left out. Who uses what is not asked.
    """
    locations = [_location(each) for each in surveys]
    plan = make_plan(situation.Situation(now_ns, locations, (), filesystems(surveys)))
    return {
        each.location: sum(verdict.disk_gain_bytes for verdict in each.evictions) for each in plan.locations
    }


def _location(found: Survey) -> situation.Location:
    return situation.Location(
        found.spec.key,
        found.spec.policy,
        found.inventory.bytes,
        found.inventory.files,
        found.facts,
        found.shares,
        situation.Circumstances(confirmed=True),
    )
