"""A metrics page with something of everything, and what its lines say."""

import re

from prometheus_client.parser import text_string_to_metric_families

from cachewarden.metrics import (
    FilesystemFigures,
    LocationFigures,
    Metrics,
    ServiceFigures,
    Snapshot,
    UserFigures,
)
from cachewarden_policies.reasons import EvictReason, KeepReason, LastUseSource, Outcome

SERVICE = ServiceFigures("1.2.3", 1_700_000_000 * 10**9)
GIB = 2**30


def full_location(location: str = "accelerate", path: bytes = b"/home/a/.accelerate") -> LocationFigures:
    return LocationFigures(
        location,
        path,
        available=True,
        bytes=250 * GIB,
        files=12_345,
        entries=17,
        limit_bytes=200 * GIB,
        target_bytes=180 * GIB,
        hard_limit_bytes=260 * GIB,
        usage_complete=True,
        inuse_complete=False,
        atime_usable=True,
        over_limit_since_ns=1_700_000_100_250_000_000,
        oldest_use_ns=1_690_000_000 * 10**9,
        last_pass_ns=1_700_000_200 * 10**9,
        last_success_ns=1_700_000_200 * 10**9,
        shortfall_bytes=70 * GIB,
        foreign_bytes=4096,
        trash_bytes=0,
        blocked_bytes={KeepReason.PINNED: 60 * GIB, KeepReason.IN_USE: 10 * GIB},
        outcome=Outcome.SHORT,
        watch_mode="inotify",
        recency_source=LastUseSource.RELATIME,
        users=(UserFigures("alice", 40 * GIB, 50 * GIB), UserFigures("1007", 4096)),
    )


def filled_metrics() -> Metrics:
    bare = LocationFigures("bare", b"/srv/bare", available=False)
    filesystem = FilesystemFigures(b"/", 10**12, 10**11, 10**7, 10**6, 5 * 10**10, 0)
    service = ServiceFigures("1.2.3", 0, False, 1_700_000_000 * 10**9)
    snapshot = Snapshot(service, (full_location(), bare), (filesystem, FilesystemFigures(b"/srv")))
    metrics = Metrics(lambda: snapshot)
    where = ("accelerate", b"/home/a/.accelerate")
    metrics.count_plan(*where, 9000)
    metrics.count_eviction(*where, EvictReason.OVER_SIZE, 8192, 4096)
    metrics.count_eviction(*where, EvictReason.OVER_SIZE, 8192, 8192)
    metrics.count_eviction(*where, EvictReason.IDLE, 1, 0)
    metrics.count_spared(*where, KeepReason.IN_USE)
    metrics.count_rollback(*where)
    metrics.count_error(*where, 13)
    metrics.count_refetched(*where, 4096)
    metrics.count_pass(*where, Outcome.SHORT, 0.25)
    metrics.count_late()
    metrics.count_overflow()
    return metrics


def samples(page: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def value(page: bytes, name: str, **labels: str) -> float | None:
    return samples(page).get((f"cachewarden_{name}", tuple(sorted(labels.items()))))


def names(page: bytes) -> dict[str, str]:
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", page.decode(), re.MULTILINE))
