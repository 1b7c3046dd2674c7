"""What a pass asks of whoever sees opens; the package `openers` has it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from cachewarden.enforce.survey import Survey
from cachewarden.evict import LiveOpeners
from cachewarden.inventory import Inventory
from cachewarden.report import Holder
from cachewarden_policies.reasons import KeepReason, LastUseSource


class Recent(Protocol):
    """The newest open of an entry: nanoseconds since the epoch."""

    @property
    def ns(self) -> int: ...


class Form(Protocol):
    """How well opens are seen in a location."""

    @property
    def value(self) -> str: ...


class Opens(Protocol):
    """Sees opens, by location key."""

    def index(self, key: str, root_fd: int, inventory: Inventory, hold_ns: int) -> Form:
        """See opens in a location from now on, by the entries of `inventory`."""

    def form(self, key: str) -> Form:
        """How well opens are seen in a location."""

    def for_location(self, key: str) -> LiveOpeners:
        """What eviction asks about one location."""

    def openers(self, key: str, entry: bytes) -> tuple[Holder, ...]:
        """Who opened an entry and still runs, for people."""

    def recent(self, key: str) -> Mapping[bytes, Recent]:
        """The newest open of each entry that was seen."""


def seen_exactly(opens: Opens, key: str) -> bool:
    """Whether each open in a location is seen, and not only what samples happen to meet."""
    return opens.form(key).value in ("filesystem", "directories")


def uses(opens: Opens, key: str) -> dict[bytes, tuple[int, LastUseSource]]:
    """The opens that were seen, as last uses for the ledger.

    From samples too: a process that was met holding an entry has opened it.
    """
    return {entry: (recent.ns, LastUseSource.OPENS) for entry, recent in opens.recent(key).items()}


def with_openers(survey: Survey, opens: Opens) -> Survey:
    """The survey with a guard on each entry that a living process opened.

    Eviction asks again at the last moment; knowing it now lets the plan say so.
    """
    key = survey.spec.key
    opens.index(key, survey.root_fd, survey.inventory, survey.spec.policy.opener_hold)
    mine = opens.for_location(key)
    mine.drain()
    facts = [
        replace(entry, veto=KeepReason.LIVE_OPENER)
        if entry.veto is None and mine.holds(entry.name)
        else entry
        for entry in survey.facts
    ]
    return replace(survey, facts=tuple(facts), opens_seen=seen_exactly(opens, key))
