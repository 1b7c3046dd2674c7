"""What a plan says: one verdict per entry, and per location the need, the shortfall and what blocks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from cachewarden_policies.reasons import EvictReason, KeepReason


@dataclass(frozen=True, slots=True)
class Verdict:
    """An entry's fate. `index` points into the location's entries; `rank` orders evictions from 0.

    `scope` names what asked for it: the location's key, `pool:NAME` or `filesystem:NAME`. `gain_bytes`
    and `disk_gain_bytes` are marginal: what the location and the disk get back, given all that
    was chosen before it. For a kept entry `rank` and `scope` are None and the gains 0.
    """

    location: str
    index: int
    reason: EvictReason | KeepReason
    rank: int | None = None
    scope: str | None = None
    gain_bytes: int = 0
    disk_gain_bytes: int = 0

    @property
    def evict(self) -> bool:
        """Whether the entry is to go."""
        return isinstance(self.reason, EvictReason)


class Verdicts(Sequence[Verdict]):
    """The verdicts of one location, at their entries' indices; those of kept entries are made on demand.

    A million `Verdict` objects cost two seconds and 120 MB, and nearly all of them say the same few
    things. `reasons` holds one member for each entry, `evicted` the verdicts of what is to go, in
    rank order. Both belong to this object from then on.
    """

    __slots__ = ("_by_index", "_location", "_reasons", "evicted")

    def __init__(
        self, location: str, reasons: list[EvictReason | KeepReason], evicted: Sequence[Verdict]
    ) -> None:
        self._location = location
        self._reasons = reasons
        self.evicted = tuple(evicted)
        self._by_index = {verdict.index: verdict for verdict in self.evicted}

    def __len__(self) -> int:
        return len(self._reasons)

    @overload
    def __getitem__(self, index: int) -> Verdict: ...
    @overload
    def __getitem__(self, index: slice) -> list[Verdict]: ...
    def __getitem__(self, index: int | slice) -> Verdict | list[Verdict]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = range(len(self._reasons))[index]
        return self._by_index.get(place) or Verdict(self._location, place, self._reasons[place])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Verdicts):
            return NotImplemented
        return (self._location, self._reasons, self.evicted) == (
            other._location,
            other._reasons,
            other.evicted,
        )

    def __hash__(self) -> int:
        return hash((self._location, len(self._reasons), self.evicted))

    def __repr__(self) -> str:
        return f"Verdicts({self._location!r}, {len(self)} entries, {len(self.evicted)} to go)"


@dataclass(frozen=True, slots=True)
class LocationPlan:
    """The plan for one location.

    `verdicts` has one verdict for each entry, at the entry's index. `need_bytes` is what its own
    size limits ask for, `shortfall_bytes` what of that no candidate can give (also when max_share
    or report-only hold it back). `planned_bytes` is the sum of the location's marginal gains.
    `blocked` says, for each reason, how many bytes of entries it keeps, when something is short.
    `brake` is true when max_share cut this plan. `over_limit` is true while a limit is crossed,
    `short` when a limit of the location, or of a scope that it belongs to, stays crossed after the plan.
    `limit_bytes` is the soft limit in force, `target_bytes` where eviction stops.
    """

    location: str
    verdicts: Sequence[Verdict]
    limit_bytes: int | None = None
    target_bytes: int | None = None
    hard_limit_bytes: int | None = None
    need_bytes: int = 0
    shortfall_bytes: int = 0
    planned_bytes: int = 0
    over_limit: bool = False
    brake: bool = False
    short: bool = False
    blocked: Mapping[KeepReason, int] = field(default_factory=dict)

    @property
    def evictions(self) -> Sequence[Verdict]:
        """The verdicts that evict, in rank order."""
        if isinstance(self.verdicts, Verdicts):
            return self.verdicts.evicted
        return sorted((v for v in self.verdicts if v.rank is not None), key=lambda v: v.rank or 0)


@dataclass(frozen=True, slots=True)
class ScopePlan:
    """Need and shortfall of a pool or a filesystem, in bytes and inodes (files for a pool).

    `members` are the keys of its locations.
    """

    scope: str
    members: tuple[str, ...] = ()
    need_bytes: int = 0
    shortfall_bytes: int = 0
    need_files: int = 0
    shortfall_files: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Frozen result of planning; dry run, log, metrics and the evicting pass all read the same one."""

    locations: Sequence[LocationPlan]
    scopes: Sequence[ScopePlan] = ()

    @property
    def evictions(self) -> list[Verdict]:
        """All verdicts that evict, in the order in which they are to be tried."""
        chosen = [verdict for plan in self.locations for verdict in plan.evictions]
        return sorted(chosen, key=lambda v: (v.rank, v.location))

    def need_of(self, location: str) -> int:
        """Bytes that have to go: for the location's own limits, or for a pool or a filesystem that it
        belongs to, whichever asks for most. Raises KeyError as `of` does.
        """
        return max([self.of(location).need_bytes, *(each.need_bytes for each in self._around(location))])

    def shortfall_of(self, location: str) -> int:
        """What is missing, in bytes: of its own limits, or of the worst scope that it belongs to."""
        scopes = self._around(location)
        return max([self.of(location).shortfall_bytes, *(each.shortfall_bytes for each in scopes)])

    def _around(self, location: str) -> list[ScopePlan]:
        return [scope for scope in self.scopes if location in scope.members]

    def of(self, location: str) -> LocationPlan:
        """The plan of one location. Raises KeyError when it is not part of the plan."""
        for plan in self.locations:
            if plan.location == location:
                return plan
        raise KeyError(location)
