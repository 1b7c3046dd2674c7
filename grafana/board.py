"""What all dashboards have: the data source, the choice of nodes and locations, links to each other."""

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as models

from grafana.panels import SOURCE

# Where the runbooks can be read in a browser. Grafana has no place of its own for them: whoever imports the
# dashboards sets it once, at the top of each.
_DOCS = "https://example.org/cachewarden/docs"

NODE = 'instance=~"$node"'
PLACE = f'{NODE}, location=~"$location", path=~"$path"'


def board(uid: str, title: str, description: str, choices: Sequence[str]) -> dashboard.Dashboard:
    """A dashboard without panels; `choices` are variables out of node, location, path, user."""
    made = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["cachewarden"])
        .readonly()
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .refresh("1m")
        .time("now-24h", "now")
        .timezone("browser")
        .with_variable(dashboard.DatasourceVariable("source").label("Data source").type("prometheus"))
    )
    for name in choices:
        made = made.with_variable(_choice(name))
    made = made.with_variable(dashboard.TextBoxVariable("docs").label("Runbooks at").default_value(_DOCS))
    return made.link(
        dashboard.DashboardLink("cachewarden")
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags(["cachewarden"])
        .keep_time(bool(1))
        .as_dropdown(bool(1))
    )


_CHOICES = {
    "node": ("Node", "label_values(cachewarden_build_info, instance)"),
    "location": ("Location", f"label_values(cachewarden_location_available{{{NODE}}}, location)"),
    "path": (
        "Path",
        f'label_values(cachewarden_location_available{{{NODE}, location=~"$location"}}, path)',
    ),
    "user": ("User", f"label_values(cachewarden_location_user_bytes{{{NODE}}}, user)"),
}


def _choice(name: str) -> Builder[models.VariableModel]:
    label, query = _CHOICES[name]
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(bool(1))
        .include_all(bool(1))
        .all_value(".*")
        .current(models.VariableOption(text="All", value="$__all", selected=True))
    )
