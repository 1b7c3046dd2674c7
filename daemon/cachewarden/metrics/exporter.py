"""The metrics page, and the methods by which the service counts. Safe to call from any thread."""

import errno
from collections.abc import Callable, Collection

from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from cachewarden.metrics.counters import Counters
from cachewarden.metrics.figures import Snapshot
from cachewarden.metrics.gauges import gauges
from cachewarden_policies.reasons import EvictReason, KeepReason, Outcome

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

# From a pass that only looks at a few directory times to a first walk over a cold network mount.
_PASS_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)


class Metrics:
    """Counters of one service, and the page. `snapshot` returns the last one at once, from memory."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        # Otherwise each histogram gets a second, unasked series with its creation time.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._snapshot = snapshot
        self._counters = Counters()
        # Not the global registry: two services in one process, as in tests, would share it.
        self._registry = CollectorRegistry()
        self._durations = Histogram(
            "cachewarden_pass_duration_seconds",
            "How long passes over a location took.",
            registry=self._registry,
            buckets=_PASS_BUCKETS,
        )

    def render(self) -> bytes:
        """The page, in the format that CONTENT_TYPE names."""
        snapshot = self._snapshot()
        known = [(each.location, each.path) for each in snapshot.locations]
        lines = [*gauges(snapshot), *self._counters.lines(known)]
        return "".join(lines).encode() + generate_latest(self._registry)

    def count_plan(self, location: str, path: bytes, planned_bytes: int) -> None:
        """A plan that is about to be applied means to take this off the location."""
        self._counters.add("planned_bytes", (location, path), planned_bytes)

    def count_eviction(
        self, location: str, path: bytes, reason: EvictReason, evicted_bytes: int, freed_bytes: int
    ) -> None:
        """An entry went: what that took off the location, and what the disk got back."""
        self._counters.add("evictions", (location, path), 1, reason)
        self._counters.add("evicted_bytes", (location, path), evicted_bytes, reason)
        self._counters.add("freed_bytes", (location, path), freed_bytes)

    def count_spared(self, location: str, path: bytes, reason: KeepReason) -> None:
        """A victim turned out to be busy or changed."""
        self._counters.add("spared", (location, path), 1, reason)

    def count_rollback(self, location: str, path: bytes) -> None:
        """A victim had been moved already and was put back."""
        self._counters.add("rollbacks", (location, path), 1)

    def count_error(self, location: str, path: bytes, number: int) -> None:
        """An error stopped an eviction; `number` as in errno(3)."""
        self._counters.add("errors", (location, path), 1, errno.errorcode.get(number, str(number)))

    def count_refetched(self, location: str, path: bytes, refetched_bytes: int) -> None:
        """An entry that was evicted not long ago is back."""
        self._counters.add("refetched_bytes", (location, path), refetched_bytes)

    def count_pass(self, location: str, path: bytes, outcome: Outcome, seconds: float) -> None:
        """A pass over a location ended."""
        self._counters.add("passes", (location, path), 1, outcome)
        self._durations.observe(seconds)

    def count_late(self) -> None:
        """A pass was due while the one before was still going on."""
        self._counters.add_to_service("passes_late")

    def count_overflow(self) -> None:
        """The kernel dropped events."""
        self._counters.add_to_service("watch_overflows")

    def retain(self, known: Collection[tuple[str, bytes]]) -> None:
        """Drop the counters of all other locations: they are no longer there to be counted for."""
        self._counters.retain(known)
