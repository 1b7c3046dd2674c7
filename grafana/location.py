"""One location: usage against its marks, what went and why, what is kept and why, how well it is known."""

from collections.abc import Iterator

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import Panel

from grafana.board import NODE, PLACE, board
from grafana.panels import Look, number, series, states

_ON = ((None, "transparent"), (1, "blue"))


def location() -> dashboard.Dashboard:
    """The dashboard."""
    made = board("cachewarden-location", "cachewarden / Location", __doc__, ["node", "location", "path"])
    for panel in (*_numbers(), *_usage(), *_evictions(), *_knowledge()):
        made = made.with_panel(panel)
    return made


def _numbers() -> Iterator[Builder[Panel]]:
    yield number("Usage", f"sum(cachewarden_location_bytes{{{PLACE}}})", Look("bytes", width=4, height=4))
    yield number(
        "Of its limit",
        f"sum(cachewarden_location_bytes{{{PLACE}}} and cachewarden_location_limit_bytes{{{PLACE}}})"
        f" / sum(cachewarden_location_limit_bytes{{{PLACE}}})",
        Look(
            "percentunit",
            width=4,
            height=4,
            steps=((None, "green"), (0.9, "orange"), (1, "red")),
            runbook="over-limit",
        ),
    )
    yield number("Entries", f"sum(cachewarden_location_entries{{{PLACE}}})", Look("short", width=4, height=4))
    yield number(
        "Oldest use",
        f"time() - min(cachewarden_location_oldest_use_timestamp_seconds{{{PLACE}}})",
        Look("s", "How long ago the least recently used entry was used.", width=4, height=4),
    )
    yield number(
        "Since the last pass",
        f"time() - min(cachewarden_location_last_pass_timestamp_seconds{{{PLACE}}})",
        Look("s", width=4, height=4, steps=((None, "green"), (3600, "red")), runbook="no-passes"),
    )
    yield number(
        "In the trash",
        f"sum(cachewarden_location_trash_bytes{{{PLACE}}})",
        Look("bytes", "On its way off the disk.", width=4, height=4, runbook="trash-not-emptying"),
    )


def _usage() -> Iterator[Builder[Panel]]:
    where = "{{path}}"
    yield series(
        "Usage against its marks",
        {
            where: f"cachewarden_location_bytes{{{PLACE}}}",
            f"{where} limit": f"cachewarden_location_limit_bytes{{{PLACE}}}",
            f"{where} target": f"cachewarden_location_target_bytes{{{PLACE}}}",
            f"{where} hard limit": f"cachewarden_location_hard_limit_bytes{{{PLACE}}}",
        },
        Look(
            "bytes",
            "Above the limit eviction starts, at the target it stops; above the hard one soft guards yield.",
            width=16,
            dashed=("(limit|target)$",),
            runbook="over-limit",
        ),
    )
    yield series(
        "Files and entries",
        {
            "files": f"sum(cachewarden_location_files{{{PLACE}}})",
            "entries": f"sum(cachewarden_location_entries{{{PLACE}}})",
        },
        Look("short", width=8),
    )


def _evictions() -> Iterator[Builder[Panel]]:
    yield series(
        "Evicted by reason",
        {
            "{{reason}}": (
                f"sum by (reason) (increase(cachewarden_evicted_bytes_total{{{PLACE}}}[$__rate_interval]))"
            )
        },
        Look("bytes", "Bytes taken off the location in each interval.", width=8, stacked=True),
    )
    yield series(
        "Evicted, really freed, fetched again",
        {
            "evicted": f"sum(increase(cachewarden_evicted_bytes_total{{{PLACE}}}[$__rate_interval]))",
            "freed": f"sum(increase(cachewarden_freed_bytes_total{{{PLACE}}}[$__rate_interval]))",
            "fetched again": f"sum(increase(cachewarden_refetched_bytes_total{{{PLACE}}}[$__rate_interval]))",
        },
        Look(
            "bytes",
            "Fetched again: evicted and back within 7 days. Much of it means that the limit is too small.",
            width=8,
            runbook="refetched",
        ),
    )
    yield series(
        "Kept although a limit is crossed, by reason",
        {
            "{{reason}}": (
                f"sum by (reason) (cachewarden_location_blocked_bytes{{{PLACE}}}) or "
                f'label_replace(sum(cachewarden_location_bytes{{{PLACE}}}) * 0, "reason", "nothing", "", "")'
            )
        },
        Look("bytes", "What stands in the way of the limit.", width=8, stacked=True, runbook="short"),
    )
    yield series(
        "Spared at the last moment, by reason",
        {
            "{{reason}}": (
                f"sum by (reason) (increase(cachewarden_spared_total{{{PLACE}}}[$__rate_interval])) or "
                f'label_replace(sum(cachewarden_location_bytes{{{PLACE}}}) * 0, "reason", "nothing", "", "")'
            )
        },
        Look("short", "Victims that turned out to be busy or changed.", width=8),
    )
    yield series(
        "Errors",
        {
            "{{errno}}": (
                f"sum by (errno) (increase(cachewarden_errors_total{{{PLACE}}}[$__rate_interval])) or "
                f'label_replace(sum(cachewarden_location_bytes{{{PLACE}}}) * 0, "errno", "none", "", "")'
            )
        },
        Look("short", "Evictions that an error of the filesystem stopped.", width=8),
    )
    yield series(
        "Foreign",
        {"{{path}}": f"cachewarden_location_foreign_bytes{{{PLACE}}}"},
        Look("bytes", "No part of the cache: counted, never touched.", width=8),
    )


def _knowledge() -> Iterator[Builder[Panel]]:
    yield states(
        "How passes ended",
        {"{{outcome}}": f"max by (outcome) (cachewarden_location_outcome{{{PLACE}}})"},
        Look(steps=_ON, width=8),
    )
    yield states(
        "How changes are noticed",
        {"{{mode}}": f"max by (mode) (cachewarden_location_watch_mode{{{PLACE}}})"},
        Look(steps=_ON, width=8, runbook="watch-degraded"),
    )
    yield states(
        "How last use is known",
        {"{{source}}": f"max by (source) (cachewarden_location_recency_source{{{PLACE}}})"},
        Look(steps=_ON, width=8),
    )
    rate = f"sum by (le) (rate(cachewarden_pass_duration_seconds_bucket{{{NODE}}}[1h]))"
    yield series(
        "Pass time",
        {
            "median": f"histogram_quantile(0.5, {rate})",
            "99 %": f"histogram_quantile(0.99, {rate})",
        },
        Look("s", "Of all locations on the chosen nodes.", runbook="no-passes"),
    )
    yield series(
        "Is everything known?",
        {
            "usage": f"min(cachewarden_location_usage_complete{{{PLACE}}})",
            "use": f"min(cachewarden_location_inuse_complete{{{PLACE}}})",
        },
        Look(
            "short",
            "1: all of it. Usage 0: parts could not be read. Use 0: unknown counts as in use.",
            runbook="in-use-unknown",
        ),
    )
