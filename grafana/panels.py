"""The kinds of panels that the dashboards are made of: one look for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = models.DataSourceRef(type_val="prometheus", uid="${source}")

Queries = Mapping[str, str]  # legend -> expression
Some = TypeVar("Some", timeseries.Panel, stat.Panel, bargauge.Panel, statetimeline.Panel, table.Panel)


@dataclass(frozen=True)
class Look:
    """How a panel shows its numbers. `steps` are (from value, colour), the first from minus infinity."""

    unit: str = "bytes"
    description: str = ""
    width: int = 12
    height: int = 8
    steps: Sequence[tuple[float | None, str]] = ()
    stacked: bool = False
    dashed: Sequence[str] = ()  # legends of lines that are marks and not measurements
    runbook: str = ""


def series(title: str, queries: Queries, look: Look) -> Builder[models.Panel]:
    """Lines over time."""
    panel = (
        _begun(timeseries.Panel(), title, look)
        .unit(look.unit)
        .min(0)
        .fill_opacity(10 if not look.stacked else 40)
        .span_nulls(bool(1))
        .legend(
            common.VizLegendOptions()
            .display_mode(shapes.LegendDisplayMode.LIST)
            .placement(shapes.LegendPlacement.BOTTOM)
            .show_legend(bool(1))
        )
        .tooltip(common.VizTooltipOptions().mode(shapes.TooltipDisplayMode.MULTI))
    )
    if look.stacked:
        panel = panel.stacking(common.StackingConfig().mode(shapes.StackingMode.NORMAL))
    for name in look.dashed:
        panel = panel.override_by_regexp(
            f"/{name}/",
            [
                models.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}),
                models.DynamicConfigValue("custom.fillOpacity", 0),
            ],
        )
    return _filled(panel, queries, look)


def number(title: str, expression: str, look: Look) -> Builder[models.Panel]:
    """One number, coloured by its thresholds."""
    panel = (
        _begun(stat.Panel(), title, look)
        .unit(look.unit)
        .color_mode(shapes.BigValueColorMode.VALUE)
        .graph_mode(shapes.BigValueGraphMode.NONE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )
    if look.steps:
        panel = panel.thresholds(_thresholds(look))
    return _filled(panel, {"": expression}, look)


def bars(title: str, queries: Queries, look: Look) -> Builder[models.Panel]:
    """The biggest now, as horizontal bars."""
    panel = (
        _begun(bargauge.Panel(), title, look)
        .unit(look.unit)
        .orientation(shapes.VizOrientation.HORIZONTAL)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )
    if look.steps:
        panel = panel.thresholds(_thresholds(look))
    for legend, expression in queries.items():
        panel = panel.with_target(_query(expression, legend).instant())
    return _with_runbook(panel, look)


def states(title: str, queries: Queries, look: Look) -> Builder[models.Panel]:
    """What held when: one row for each member of an enum, filled while it holds."""
    panel = (
        _begun(statetimeline.Panel(), title, look)
        .show_value(shapes.VisibilityMode.NEVER)
        .thresholds(_thresholds(look))
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
    )
    return _filled(panel, queries, look)


def listing(title: str, columns: Queries, look: Look, units: Mapping[str, str]) -> Builder[models.Panel]:
    """A table with a row for each location; `columns` are instant queries, `units` theirs by title."""
    panel = _begun(table.Panel(), title, look)
    renamed = {}
    for number_of, (name, expression) in enumerate(columns.items()):
        letter = chr(ord("A") + number_of)
        query = _query(expression, "").instant().format(PromQueryFormat.TABLE).ref_id(letter)
        panel = panel.with_target(query)
        renamed[f"Value #{letter}"] = name
    hidden = {"Time": True, "__name__": True, "job": True}
    panel = panel.with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
    panel = panel.with_transformation(
        models.DataTransformerConfig(
            id_val="organize", options={"excludeByName": hidden, "renameByName": renamed}
        )
    )
    for name, unit in units.items():
        panel = panel.override_by_name(name, [models.DynamicConfigValue("unit", unit)])
    return _with_runbook(panel, look)


def _begun(panel: Some, title: str, look: Look) -> Some:
    """What all panels have."""
    panel = panel.title(title).description(look.description).datasource(SOURCE)
    return panel.span(look.width).height(look.height)


def _filled(panel: Some, queries: Queries, look: Look) -> Some:
    for legend, expression in queries.items():
        panel = panel.with_target(_query(expression, legend))
    return _with_runbook(panel, look)


def _query(expression: str, legend: str) -> prometheus.Dataquery:
    query = prometheus.Dataquery().expr(expression).datasource(SOURCE)
    return query.legend_format(legend) if legend else query


def _with_runbook(panel: Some, look: Look) -> Some:
    if not look.runbook:
        return panel
    link = (
        dashboard.DashboardLink("What to do")
        .url(f"${{docs}}/runbooks/{look.runbook}.md")
        .type(models.DashboardLinkType.LINK)
        .target_blank(bool(1))
    )
    return panel.links([link])


def _thresholds(look: Look) -> Builder[models.ThresholdsConfig]:
    steps = [models.Threshold(value=value, color=colour) for value, colour in look.steps]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)
