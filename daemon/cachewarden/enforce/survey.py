"""Looking at one location: what is in it, how old, how well we know it, and what must not go.

A survey joins what was measured in it with what the ledger and the pins remember. It changes nothing on
the disk; the ledger learns which entries were seen.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from cachewarden import recency
from cachewarden.enforce.guards import lease_trusted
from cachewarden.enforce.judging import Bench, Judgement, grounds_of, judge
from cachewarden.enforce.root import open_root
from cachewarden.errors import LocationUnavailableError
from cachewarden.inventory import Inventory
from cachewarden.kernel import statfs
from cachewarden.ledger import Seen
from cachewarden.mountinfo import AtimeMode, Mount, mount_of
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

    `facts` are the planner's entries, at the same index as `inventory.entries`; `judged` is how they were
    before anybody was asked who opened what.
    """

    spec: LocationSpec
    root_fd: int
    mount: Mount
    space: statfs.Space
    inventory: Inventory
    facts: tuple[situation.Entry, ...]
    judged: Judgement
    atime_mode: AtimeMode
    lease_trusted: bool
    refetched_bytes: int = 0
    warnings: tuple[str, ...] = ()
    opens_seen: bool = False

    @property
    def recency_source(self) -> recency.RecencySource:
        """The best source of last use that the location has."""
        return recency.recency_source(self.atime_mode, opens_available=self.opens_seen)

    @property
    def shares(self) -> list[situation.Share]:
        """What several entries share, as the planner wants it."""
        return [
            situation.Share(
                each.owners,
                each.bytes,
                each.files,
                outside=each.outside,
                kept=each.claim is not None and each.claim.kept,
            )
            for each in self.inventory.shares
        ]


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
    bench: Bench,
    inventory: Inventory,
) -> Survey:
    """Judge what was measured in the location behind `opened_root`."""
    root_fd, mount = opened_root
    seen = memory.seen(
        spec,
        [(entry.name, entry.measure.bytes) for entry in inventory.entries],
        bench.now_ns,
        complete=inventory.complete,
        formerly={each.name: each.claim.formerly for each in inventory.entries if each.claim.formerly},
    )
    judged = judge(grounds_of(spec, mount, root_fd, bench.guards), inventory, seen.records, bench)
    return Survey(
        spec=spec,
        root_fd=root_fd,
        mount=mount,
        space=statfs.usage(root_fd),
        inventory=inventory,
        facts=judged.facts,
        judged=judged,
        atime_mode=judged.grounds.mode,
        lease_trusted=lease_trusted(mount),
        refetched_bytes=seen.refetched_bytes,
        warnings=tuple(_warnings(inventory, judged.futures)),
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
