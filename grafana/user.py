"""Whose data it is. Empty unless `[daemon] metrics_users = true` puts names of users on the metrics page."""

from grafana_foundation_sdk.builders import dashboard

from grafana.board import PLACE, board
from grafana.panels import Look, bars, listing, series

_MINE = f'{PLACE}, user=~"$user"'


def user() -> dashboard.Dashboard:
    """The dashboard."""
    made = board("cachewarden-user", "cachewarden / User", __doc__, ["node", "location", "path", "user"])
    made = made.with_panel(
        bars(
            "Who has most",
            {"{{user}}": f"topk(15, sum by (user) (cachewarden_location_user_bytes{{{_MINE}}}))"},
            Look("bytes", "In all chosen locations together.", width=8, height=10),
        )
    )
    made = made.with_panel(
        series(
            "By user",
            {"{{user}}": f"sum by (user) (cachewarden_location_user_bytes{{{_MINE}}})"},
            Look(
                "bytes", "Entries by the owner of their directory or file.", width=16, height=10, stacked=True
            ),
        )
    )
    by = "by (instance, location, path, user)"
    return made.with_panel(
        listing(
            "By user and location",
            {"Usage": f"sum {by} (cachewarden_location_user_bytes{{{_MINE}}})"},
            Look(width=24, height=10),
            {"Usage": "bytes"},
        )
    )
