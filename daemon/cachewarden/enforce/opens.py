"""What a pass asks of whoever sees opens; the package `openers` has it."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Protocol

from cachewarden.enforce.series import with_series
from cachewarden.enforce.survey import Survey
from cachewarden.evict import LiveOpeners
from cachewarden.inventory import Entry, Inventory
from cachewarden.ledger import Ledger, Opener, Passing, Record, Use
from cachewarden.recency import SEEN_BY_FANOTIFY, SEEN_BY_SAMPLES, last_use
from cachewarden.report import Holder
from cachewarden.spec import LocationSpec
from cachewarden_policies import situation
from cachewarden_policies.reasons import KeepReason, LastUseSource


class News(Protocol):
    """What was seen and is not in the ledger, by entry."""

    @property
    def used(self) -> Mapping[bytes, tuple[int, int, bytes, int | None]]:
        """The newest open: nanoseconds since the epoch, pid, name and user of the process."""

    @property
    def passed(self) -> Mapping[bytes, tuple[int, int, int]]:
        """What programs did that do not count; see `ledger.Passing`."""


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

    def held(self, key: str, entries: Collection[bytes]) -> AbstractSet[bytes]:
        """Those of some entries that a living process opened, or of which that is not known."""

    def openers(self, key: str, entry: bytes) -> tuple[Holder, ...]:
        """Who opened an entry and still runs, for people."""

    def take_news(self, key: str) -> News:
        """What of a location's last uses the ledger has not got; the caller brings it there."""


def seen_exactly(opens: Opens, key: str) -> bool:
    """Whether each open in a location is seen, and not only what samples happen to meet."""
    return opens.form(key).value in ("filesystem", "directories")


def every_open_is_seen(opens: Opens, key: str) -> bool:
    """Whether an open in a location is seen whatever is opened, new directories included."""
    return opens.form(key).value == "filesystem"


def record_news(ledger: Ledger, opens: Opens, spec: LocationSpec, now_ns: int) -> frozenset[bytes]:
    """Bring the opens that were seen to the ledger; the entries that they are of.

    From samples too: a process that was met holding an entry has opened it.
    """
    news = opens.take_news(spec.key)
    if not (news.used or news.passed):
        return frozenset()
    seen_by = SEEN_BY_FANOTIFY if seen_exactly(opens, spec.key) else SEEN_BY_SAMPLES
    used = {
        entry: Use(ns, LastUseSource.OPENS, Opener(pid, comm, uid), seen_by)
        for entry, (ns, pid, comm, uid) in news.used.items()
    }
    passed = {entry: Passing(*each) for entry, each in news.passed.items()}
    ledger.record_use(spec, used, now_ns, passed)
    return frozenset(used.keys() | passed.keys())


def with_openers(survey: Survey, opens: Opens, ledger: Ledger, now_ns: int) -> Survey:
    """The survey with a guard on each entry that a living process opened, and with the last uses of now.

    Eviction asks again at the last moment; knowing it now lets the plan say so. What was opened while the
    location was measured counts, and so does that an indexer was at it: the access times tell of both.
    """
    key = survey.spec.key
    opens.index(key, survey.root_fd, survey.inventory, survey.spec.policy.opener_hold)
    opens.for_location(key).drain()
    fresh = record_news(ledger, opens, survey.spec, now_ns)
    records = ledger.records(key) if fresh else {}
    held = with_series(opens.held(key, [fact.name for fact in survey.facts]), survey.inventory)
    facts = survey.facts
    if fresh or held:
        pairs = zip(survey.inventory.entries, facts, strict=True)
        facts = tuple(
            _now_known(survey, entry, fact, records.get(fact.name), held, now_ns)
            if fact.name in fresh or fact.name in held
            else fact
            for entry, fact in pairs
        )
    return replace(survey, facts=facts, opens_seen=seen_exactly(opens, key))


def _now_known(
    survey: Survey,
    entry: Entry,
    fact: situation.Entry,
    known: Record | None,
    held: AbstractSet[bytes],
    now_ns: int,
) -> situation.Entry:
    found = fact if known is None else _used(survey, entry, fact, known, now_ns)
    if fact.veto is None and fact.name in held:
        found = replace(found, veto=KeepReason.LIVE_OPENER)
    return found


def _used(survey: Survey, entry: Entry, fact: situation.Entry, known: Record, now_ns: int) -> situation.Entry:
    used = last_use(
        entry.measure,
        replace(known, appeared=known.appeared and not entry.claim.partial),
        atime_mode=survey.atime_mode,
        ignore_ctime=survey.spec.ignore_ctime,
        now_ns=now_ns,
    )
    return replace(fact, last_use_ns=used.ns, last_use_source=used.source)
