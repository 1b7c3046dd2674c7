"""What the planner is told of each entry, worked out again only for entries of which something changed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cachewarden import recency
from cachewarden.enforce.guards import Guards, is_shared, veto_of
from cachewarden.inventory import Entry, Inventory
from cachewarden.ledger import Pin, Record
from cachewarden.mountinfo import AtimeMode, Mount, atime_mode
from cachewarden.spec import LocationSpec
from cachewarden_policies import situation


@dataclass(frozen=True, slots=True)
class Grounds:
    """What all entries of a location are judged by. `lasting`: nothing in it is a matter of the time."""

    spec: LocationSpec
    mount: Mount
    mode: AtimeMode
    busy: frozenset[bytes]
    pins: tuple[Pin, ...] | None
    lasting: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """The planner's entries, at the same index as those of `inventory`, and what they were judged by.

    `timely` are names of entries with a stamp that lay ahead of `now_ns`: what is known of them changes by
    itself. `futures` is how many have one that is remarkable.
    """

    grounds: Grounds
    inventory: Inventory
    records: Mapping[bytes, Record]
    facts: tuple[situation.Entry, ...]
    timely: frozenset[bytes]
    futures: int
    now_ns: int

    def known(self) -> dict[bytes, tuple[Entry, situation.Entry]]:
        """Entries as they were measured and judged, by name, without those that are a matter of time."""
        pairs = zip(self.inventory.entries, self.facts, strict=True)
        return {fact.name: (entry, fact) for entry, fact in pairs if fact.name not in self.timely}


@dataclass(frozen=True, slots=True)
class Bench:
    """What a pass brings: its guards, its time, and how the location was judged before."""

    guards: Guards
    now_ns: int
    before: Judgement | None = None


def judge(grounds: Grounds, inventory: Inventory, records: Mapping[bytes, Record], bench: Bench) -> Judgement:
    """Judge all entries. What is as it was at the judgement before is the same object."""
    before, now_ns = bench.before, bench.now_ns
    known: Mapping[bytes, tuple[Entry, situation.Entry]] = {}
    if before is not None and grounds.lasting and before.grounds == grounds and before.now_ns <= now_ns:
        if before.inventory is inventory and before.records is records and not before.timely:
            return before
        known = before.known()
    facts: list[situation.Entry] = []
    timely: set[bytes] = set()
    futures = 0
    for entry in inventory.entries:
        record = records[entry.name]
        last = known.get(entry.name)
        if last is not None and last[0] is entry and before is not None:
            old = before.records[entry.name]
            if old is record or old == record:
                facts.append(last[1])
                continue
        fact, future = _judged(grounds, entry, record, bench)
        facts.append(fact)
        futures += future
        if _newest(entry, record) > now_ns:
            timely.add(entry.name)
    return Judgement(grounds, inventory, records, tuple(facts), frozenset(timely), futures, now_ns)


def grounds_of(spec: LocationSpec, mount: Mount, root_fd: int, guards: Guards) -> Grounds:
    """What the entries of a location are judged by, at this moment."""
    return Grounds(
        spec,
        mount,
        atime_mode(mount),
        guards.busy_below(root_fd),
        guards.pins,
        lasting=not is_shared(spec, mount),
    )


def _newest(entry: Entry, record: Record) -> int:
    measure = entry.measure
    return max(
        measure.mtime_ns, measure.ctime_ns, measure.atime_ns, record.first_seen_ns, record.last_use_ns or 0
    )


def _judged(grounds: Grounds, entry: Entry, record: Record, bench: Bench) -> tuple[situation.Entry, bool]:
    spec, now_ns = grounds.spec, bench.now_ns
    if entry.claim.partial:
        # It became an entry of its own by being left alone for long: its birthday there is no use of it.
        record = replace(record, appeared=False)
    used = recency.last_use(
        entry.measure, record, atime_mode=grounds.mode, ignore_ctime=spec.ignore_ctime, now_ns=now_ns
    )
    plain = situation.Entry(
        name=entry.name,
        bytes=entry.measure.bytes,
        files=entry.measure.files,
        own_bytes=entry.own_bytes,
        own_files=entry.own_files,
        disk_bytes=entry.disk_bytes,
        disk_inodes=entry.disk_inodes,
        last_use_ns=used.ns,
        last_use_source=used.source,
        changed_ns=recency.changed_ns(entry.measure, ignore_ctime=spec.ignore_ctime, now_ns=now_ns),
        first_seen_ns=min(record.first_seen_ns, now_ns),
        cost=entry.claim.cost,
        owner=entry.owner,
        partial=entry.claim.partial,
        stale=entry.claim.stale,
        shares=entry.shares,
    )
    veto = veto_of(spec, entry, plain, bench.guards, busy=grounds.busy, shared=not grounds.lasting)
    return (plain if veto is None else replace(plain, veto=veto)), used.future
