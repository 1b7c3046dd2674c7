"""Looking at one location: what is in it, how old, how well we know it, and what must not go.

A survey joins what was measured in it with what the ledger and the pins remember. It changes nothing on
the disk; the ledger learns which entries were seen.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from cachewarden import recency
from cachewarden.enforce.guards import Guards, lease_trusted, veto_of
from cachewarden.enforce.root import open_root
from cachewarden.errors import LocationUnavailableError
from cachewarden.inventory import Entry, Inventory
from cachewarden.kernel import statfs
from cachewarden.ledger import Record, Seen
from cachewarden.mountinfo import AtimeMode, Mount, atime_mode, mount_of
from cachewarden.paths import show
from cachewarden.spec import LocationSpec
from cachewarden_policies import situation


class Memory(Protocol):
    """What a survey asks of the ledger."""

    def seen(
        self,
        location: LocationSpec,
        entries: Iterable[tuple[bytes, int]],
        now_ns: int,
        *,
        complete: bool = True,
        formerly: Mapping[bytes, bytes] | None = None,
    ) -> Seen:
        """Take over what a scan found, as (name, bytes), and say what is remembered of each."""


@dataclass(frozen=True, slots=True)
class Survey:
    """One location as it is now. `root_fd` is open as long as the survey is used.

    `facts` are the planner's entries, at the same index as `inventory.entries`.
    """

    spec: LocationSpec
    root_fd: int
    mount: Mount
    space: statfs.Space
    inventory: Inventory
    facts: tuple[situation.Entry, ...]
    atime_mode: AtimeMode
    lease_trusted: bool
    refetched_bytes: int = 0
    warnings: tuple[str, ...] = ()
    opens_seen: bool = False

    @property
    def recency_source(self) -> recency.RecencySource:
        """The best source of last use that the location has."""
        return recency.recency_source(self.atime_mode, opens_available=self.opens_seen)


@contextmanager
def opened(spec: LocationSpec, trusted: frozenset[int]) -> Iterator[tuple[int, Mount]]:
    """The location's root descriptor and its mount. Raises LocationUnavailableError."""
    root_fd = open_root(spec.path, trusted)
    try:
        try:
            mount = mount_of(root_fd)
        except (OSError, LookupError) as error:
            raise LocationUnavailableError(
                f"{show(spec.path)}: its mount cannot be found out: {error}"
            ) from error
        if spec.must_be_mount and mount.point != spec.path:
            raise LocationUnavailableError(f"{show(spec.path)}: nothing is mounted there (must_be_mount)")
        yield root_fd, mount
    finally:
        os.close(root_fd)


def survey(
    spec: LocationSpec,
    opened_root: tuple[int, Mount],
    memory: Memory,
    guards: Guards,
    now_ns: int,
    inventory: Inventory,
) -> Survey:
    """Judge what was measured in the location behind `opened_root`."""
    root_fd, mount = opened_root
    seen = memory.seen(
        spec,
        [(entry.name, entry.measure.bytes) for entry in inventory.entries],
        now_ns,
        complete=inventory.complete,
        formerly={each.name: each.claim.formerly for each in inventory.entries if each.claim.formerly},
    )
    mode = atime_mode(mount)
    busy = guards.busy_below(root_fd)
    facts, futures = [], 0
    for entry in inventory.entries:
        record = seen.records[entry.name]
        if entry.claim.partial:
            # It became an entry of its own by being left alone for long: its birthday there is no use of it.
            record = replace(record, appeared=False)
        used = recency.last_use(
            entry.measure, record, atime_mode=mode, ignore_ctime=spec.ignore_ctime, now_ns=now_ns
        )
        futures += used.future
        plain = _facts(spec, entry, used, record, now_ns)
        facts.append(replace(plain, veto=veto_of(spec, mount, entry, plain, guards, busy=busy)))
    return Survey(
        spec=spec,
        root_fd=root_fd,
        mount=mount,
        space=statfs.usage(root_fd),
        inventory=inventory,
        facts=tuple(facts),
        atime_mode=mode,
        lease_trusted=lease_trusted(mount),
        refetched_bytes=seen.refetched_bytes,
        warnings=tuple(_warnings(inventory, futures)),
    )


def _warnings(inventory: Inventory, futures: int) -> Iterator[str]:
    yield from inventory.warnings
    if futures:
        yield f"{futures} entries have times in the future, which do not count"
    if inventory.unreadable:
        path, number = inventory.unreadable[0]
        yield (
            f"{len(inventory.unreadable)} parts could not be read, so that all figures are lower bounds; "
            f"the first is {show(path)}: {os.strerror(number)}"
        )


def _facts(
    spec: LocationSpec, entry: Entry, used: recency.LastUse, record: Record, now_ns: int
) -> situation.Entry:
    return situation.Entry(
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
