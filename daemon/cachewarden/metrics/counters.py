"""The counters: what happened since the service started, kept here and added up under one lock."""

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from cachewarden.metrics.gauges import where
from cachewarden.metrics.text import escape, family

# Counters of a location that have no further label start at 0 with the location, so that Prometheus
# sees the first step; a step from "absent" to 1 is none to it.
_PLAIN = {
    "planned_bytes": "Bytes that plans meant to take off locations.",
    "freed_bytes": "Bytes whose last link and last descriptor went.",
    "refetched_bytes": "Bytes evicted and back within 7 days: the limit is too small.",
    "rollbacks": "Evictions that were undone because somebody came.",
}
_LABELLED = {
    "evictions": ("reason", "Entries evicted."),
    "evicted_bytes": ("reason", "Bytes taken off locations."),
    "spared": ("reason", "Victims that turned out to be busy or changed, and stayed."),
    "errors": ("errno", "Evictions that an error of the filesystem stopped."),
    "passes": ("outcome", "Passes by how they ended."),
}
_SERVICE = {
    "passes_late": "Passes that were due while the one before was still going on.",
    "watch_overflows": "Times that events were lost, and everything was measured again.",
}

Location = tuple[str, bytes]


class Counters:
    """Numbers that only grow, by name, location and one small enum."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_locations: dict[Location, dict[tuple[str, str], int]] = {}
        self._of_service = dict.fromkeys(_SERVICE, 0)

    def add(self, name: str, location: Location, amount: int, member: str = "") -> None:
        """Count for one location; `member` is the value of the counter's third label, if it has one."""
        assert name in (_LABELLED if member else _PLAIN)
        with self._lock:
            counts = self._of_locations.setdefault(location, defaultdict(int))
            counts[name, member] += amount

    def add_to_service(self, name: str) -> None:
        """Count once for the whole service."""
        with self._lock:
            self._of_service[name] += 1

    def retain(self, known: Collection[Location]) -> None:
        """Drop the counts of all other locations."""
        with self._lock:
            for gone in self._of_locations.keys() - set(known):
                del self._of_locations[gone]

    def lines(self, known: Iterable[Location]) -> Iterator[str]:
        """All lines of all counters, for the locations of the snapshot.

        For those alone: a pass that ends after its location was dropped still counts, and would
        bring back a series that nobody ever drops again.
        """
        with self._lock:
            marked = [(where(*each), dict(self._of_locations.get(each, {}))) for each in known]
            of_service = dict(self._of_service)
        for name, help_text in _PLAIN.items():
            rows = ((text, counts.get((name, ""), 0)) for text, counts in marked)
            yield from family(f"cachewarden_{name}_total", "counter", help_text, rows)
        for name, (label, help_text) in _LABELLED.items():
            yield from family(
                f"cachewarden_{name}_total",
                "counter",
                help_text,
                (
                    (f'{text},{label}="{escape(member)}"', count)
                    for text, counts in marked
                    for (of, member), count in sorted(counts.items())
                    if of == name
                ),
            )
        for name, help_text in _SERVICE.items():
            yield from family(f"cachewarden_{name}_total", "counter", help_text, [("", of_service[name])])
