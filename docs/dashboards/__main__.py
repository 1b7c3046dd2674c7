"""`python -m docs.dashboards`: ask a real Prometheus every panel's query, and write docs/dashboards.md anew.

Needs the Debian package prometheus; as root also opens are seen.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.system.watched import BOARDS, Prometheus, filled, panels, watched

_PAGE = Path(__file__).parents[1] / "dashboards.md"
_SHOWN = 3
_HEAD = """# Dashboards

Three dashboards for Grafana, made by [code](../grafana/__main__.py). Import `grafana/*.json` (the package has
them in `/usr/share/cachewarden/dashboards`) and choose the Prometheus that scrapes your nodes; "Runbooks at"
is where `docs/` can be read in a browser.

Below is every panel with its query, and what a real Prometheus ({version}) answered on {day}. For half
a minute it had scraped a service with two locations of 2 MiB at most, from one of which entries went.
Everything was chosen in the variables, and each range was 30 s. `python -m docs.dashboards` asks anew, and
writes this page. There is no picture of Grafana here: it was not to be had where this was made.
"""


def main() -> int:
    """0 once the page is written; AssertionError when a panel had nothing to show."""
    argparse.ArgumentParser(prog="python -m docs.dashboards", description=__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="dashboards-") as base, watched(Path(base)) as asked:
        version = asked.ask("status/buildinfo")["version"].partition("+")[0]
        day = datetime.now(UTC).strftime("%-d %B %Y")
        parts = [_HEAD.format(version=version, day=day)]
        for board in BOARDS:
            parts += _board(asked, board)
        text = "\n".join(parts)
    # What only this run was: its directory, its port.
    text = text.replace(base, "/srv")
    _PAGE.write_text(re.sub(r"127\.0\.0\.1:\d+", "box:9843", text), encoding="utf-8")
    return 0


def _board(asked: Prometheus, board: Path) -> Iterator[str]:
    found = json.loads(board.read_text())
    yield f"## {found['title']}\n"
    yield f"{found['description']}\n"
    for panel in panels(board):
        if targets := panel.get("targets"):
            yield f"### {panel['title']}\n"
            yield f"{_kind(panel)}\n"
            for target in targets:
                yield _answered(asked, target["expr"])


def _kind(panel: dict[str, Any]) -> str:
    unit = panel["fieldConfig"]["defaults"].get("unit", "")
    said = f" {panel['description']}" if panel.get("description") else ""
    return f"*{panel['type']}{f', {unit}' if unit else ''}.*{said}"


def _answered(asked: Prometheus, expression: str) -> str:
    series = asked.query(filled(expression))
    assert series, f"nothing for {expression}"
    lines = [f"{_labels(each['metric'])} {each['value'][1]}" for each in series[:_SHOWN]]
    more = len(series) - _SHOWN
    lines += [f"… and {more} more"] if more > 0 else []
    return "\n".join(["```promql", expression.strip(), "```", "", "```text", *lines, "```", ""])


def _labels(metric: dict[str, str]) -> str:
    name = metric.pop("__name__", "")
    metric.pop("job", None)
    labels = ", ".join(f'{key}="{value}"' for key, value in sorted(metric.items()))
    return f"{name}{{{labels}}}"


if __name__ == "__main__":
    sys.exit(main())
