"""One location in the hands of a pass: the survey it started from, and what became of its entries."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cachewarden.enforce.guards import stronger
from cachewarden.enforce.survey import Survey
from cachewarden.enforce.victims import Victims
from cachewarden.evict.served import Evicting
from cachewarden.report import EvictedEntry, FailedEntry, Holder, SparedEntry
from cachewarden_policies import situation
from cachewarden_policies.progress import advance, book
from cachewarden_policies.reasons import KeepReason
from cachewarden_policies.verdicts import LocationPlan


@dataclass(slots=True)
class Work:
    """State of one location during a pass. Only `carry_out` changes it.

    `location` is what the next plan looks at; `numbers` maps its entries to those of the survey.
    `removed` and `busy` are indices into the survey's entries; `by_name` outlives a second survey.
    """

    survey: Survey
    evictor: Evicting
    victims: Victims
    location: situation.Location
    numbers: tuple[int, ...]
    bytes_before: int
    avail_before: int
    removed: set[int] = field(default_factory=set)
    busy: dict[bytes, KeepReason] = field(default_factory=dict)
    evicted: list[EvictedEntry] = field(default_factory=list)
    spared: dict[bytes, SparedEntry] = field(default_factory=dict)
    failed: dict[bytes, FailedEntry] = field(default_factory=dict)
    sighted: dict[bytes, tuple[Holder, ...]] = field(default_factory=dict)  # plainly in use, with holders
    intents: list[int] = field(default_factory=list)  # noted in the ledger, to be settled with the rest
    changed: bool = False  # something changed under way: measure again before the pass ends
    disk_bytes: int = 0  # what the filesystem should have got back
    disk_inodes: int = 0
    freed_bytes: int = 0
    futile: bool = False  # its filesystem gave nothing back
    pruned: bool = False  # its tool was asked to prune it
    first_plan: LocationPlan | None = None
    need_bytes: int = 0  # what the first plan wanted to go, for its limits or for those that it shares
    last_plan: LocationPlan | None = None

    @property
    def key(self) -> str:
        """The location's key."""
        return self.survey.spec.key

    def restart(self, survey: Survey, victims: Victims, location: situation.Location) -> None:
        """Go on with a second survey of the same location; what was done so far stays in the books."""
        so_far = self.location.circumstances
        self.survey = survey
        self.victims = victims
        self.numbers = tuple(range(len(survey.facts)))
        self.removed = set()
        self.changed = False
        self.location = replace(
            location,
            circumstances=replace(
                location.circumstances,
                bytes_at_start=so_far.bytes_at_start,
                files_at_start=so_far.files_at_start,
                entries_at_start=so_far.entries_at_start,
                evicted_bytes=so_far.evicted_bytes,
                evicted_entries=so_far.evicted_entries,
                evicted_for=so_far.evicted_for,
            ),
        )

    def see(self, in_use: Mapping[int, tuple[Holder, ...]]) -> None:
        """Guard what is plainly in use, before anything is tried; `in_use` by index of the survey.

        That says more than that its opener lives, and takes the place of it.
        """
        self.sighted |= {self.survey.facts[number].name: holders for number, holders in in_use.items()}
        entries = [
            replace(entry, veto=stronger(entry.veto, KeepReason.IN_USE)) if number in in_use else entry
            for number, entry in zip(self.numbers, self.location.entries, strict=True)
        ]
        self.location = replace(self.location, entries=entries)

    def take(self, removed: Mapping[int, str], vetoes: dict[int, KeepReason]) -> None:
        """Book what a round did; indices are those of `location.entries` at the round's plan.

        `removed` has the scope that asked for each entry that went.
        """
        progress = advance(self.location, removed, vetoes)
        past = book(self.location, progress, removed)
        self.removed |= {self.numbers[index] for index in removed}
        self.numbers = tuple(self.numbers[index] for index in progress.kept)
        self.disk_bytes += progress.disk_bytes
        self.disk_inodes += progress.disk_inodes
        self.location = replace(progress.location, circumstances=past)
