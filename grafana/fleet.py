"""All nodes at a glance: how full, what grows, where a limit cannot be met."""

from collections.abc import Iterator

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import Panel

from grafana.board import NODE, board
from grafana.panels import Look, bars, listing, number, series

_OK, _BAD = "green", "red"


def fleet() -> dashboard.Dashboard:
    """The dashboard."""
    made = board("cachewarden-fleet", "cachewarden / Fleet", __doc__, ["node"])
    for panel in (*_numbers(), *_usage(), *_disks()):
        made = made.with_panel(panel)
    return made


def _numbers() -> Iterator[Builder[Panel]]:
    alarm = ((None, _OK), (1, _BAD))
    yield number(
        "Nodes",
        f"count(cachewarden_build_info{{{NODE}}})",
        Look("short", "Services that answer.", width=4, height=4, runbook="down"),
    )
    yield number(
        "Cached",
        f"sum(cachewarden_location_bytes{{{NODE}}})",
        Look("bytes", "In all locations.", width=4, height=4),
    )
    yield number(
        "Evicted in 24 h",
        f"sum(increase(cachewarden_evicted_bytes_total{{{NODE}}}[24h])) or vector(0)",
        Look("bytes", "Taken off locations.", width=4, height=4),
    )
    yield number(
        "Short",
        f'sum(cachewarden_location_outcome{{{NODE}, outcome="short"}}) or vector(0)',
        Look(
            "short", "Locations whose limit cannot be met.", width=4, height=4, steps=alarm, runbook="short"
        ),
    )
    yield number(
        "Waiting for confirmation",
        f'sum(cachewarden_location_outcome{{{NODE}, outcome="waiting_for_confirmation"}}) or vector(0)',
        Look(
            "short",
            "Locations that max_share holds back.",
            width=4,
            height=4,
            steps=alarm,
            runbook="waiting-for-confirmation",
        ),
    )
    yield number(
        "Alerts",
        'sum(ALERTS{alertname=~"Cachewarden.*", alertstate="firing"}) or vector(0)',
        Look("short", "Firing now.", width=4, height=4, steps=alarm),
    )


def _usage() -> Iterator[Builder[Panel]]:
    yield series(
        "Usage and limits by node",
        {
            "{{instance}}": f"sum by (instance) (cachewarden_location_bytes{{{NODE}}})",
            "{{instance}} limit": f"sum by (instance) (cachewarden_location_limit_bytes{{{NODE}}})",
        },
        Look("bytes", "Limits are drawn dashed.", dashed=("limit$",), runbook="over-limit"),
    )
    yield bars(
        "Top growers, 6 h",
        {
            "{{instance}} {{location}} {{path}}": (
                f"topk(10, delta(cachewarden_location_bytes{{{NODE}}}[6h]) > 0) or "
                f"topk(1, cachewarden_location_bytes{{{NODE}}} * 0)"
            )
        },
        Look("bytes", "How much the locations that grew most have grown."),
    )
    by = "by (instance, location, path)"
    yield listing(
        "Locations",
        {
            "Usage": f"sum {by} (cachewarden_location_bytes{{{NODE}}})",
            "Limit": f"sum {by} (cachewarden_location_limit_bytes{{{NODE}}})",
            "Full": (
                f"sum {by} (cachewarden_location_bytes{{{NODE}}})"
                f" / sum {by} (cachewarden_location_limit_bytes{{{NODE}}})"
            ),
            "Entries": f"sum {by} (cachewarden_location_entries{{{NODE}}})",
            "Oldest use": f"time() - max {by} (cachewarden_location_oldest_use_timestamp_seconds{{{NODE}}})",
            "Available": f"min {by} (cachewarden_location_available{{{NODE}}})",
        },
        Look(width=24, height=9),
        {"Usage": "bytes", "Limit": "bytes", "Full": "percentunit", "Oldest use": "s", "Available": "bool"},
    )
    yield series(
        "Shortfall",
        {
            "{{instance}} {{location}} {{path}}": (
                f"cachewarden_location_shortfall_bytes{{{NODE}}} > 0 or "
                f"sum by (instance, location, path) (cachewarden_location_bytes{{{NODE}}} * 0)"
            )
        },
        Look("bytes", "What limits ask for and no entry may give.", runbook="short"),
    )
    yield series(
        "Evicted by reason",
        {
            "{{reason}}": (
                f"sum by (reason) (rate(cachewarden_evicted_bytes_total{{{NODE}}}[$__rate_interval]))"
            )
        },
        Look("Bps", "All nodes together.", stacked=True),
    )


def _disks() -> Iterator[Builder[Panel]]:
    yield series(
        "Free space",
        {
            "{{instance}} {{filesystem}}": f"cachewarden_filesystem_avail_bytes{{{NODE}}}",
            "{{instance}} {{filesystem}} floor": f"cachewarden_filesystem_min_free_bytes{{{NODE}}}",
        },
        Look("bytes", "Floors (min_free) are drawn dashed.", dashed=("floor$",), runbook="disk-will-be-full"),
    )
    yield series(
        "Deleted and still open",
        {"{{instance}} {{filesystem}}": f"cachewarden_filesystem_deleted_open_bytes{{{NODE}}}"},
        Look("bytes", "Space that comes back only when programs close deleted files."),
    )
