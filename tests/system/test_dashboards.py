"""The Grafana dashboards: made by the code beside them, and every query answered by a real Prometheus."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from tests.system.watched import BOARDS, ROOT, filled, panels, watched

# One Prometheus for all of them.
pytestmark = pytest.mark.xdist_group("prometheus")

ALL = [
    (board.stem, panel["title"], target["expr"])
    for board in BOARDS
    for panel in panels(board)
    for target in panel.get("targets", [])
]


def test_the_files_are_what_the_code_makes():
    done = subprocess.run(
        [sys.executable, "-m", "grafana", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_panels_have_units_and_links_lead_to_pages_that_exist():
    for board in BOARDS:
        text = board.read_text()
        for page in re.findall(r"\$\{docs\}/runbooks/([a-z0-9-]+)\.md", text):
            assert (ROOT / "docs" / "runbooks" / f"{page}.md").exists(), page
        for panel in json.loads(text)["panels"]:
            if panel["type"] in ("timeseries", "stat", "bargauge"):
                assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
            assert panel["datasource"]["uid"] == "${source}"


def test_panels_do_not_overlap():
    for board in BOARDS:
        taken = set()
        for panel in json.loads(board.read_text())["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert place["x"] + place["w"] <= 24
            assert not cells & taken, f"{board.stem}: {panel['title']}"
            taken |= cells


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """It has scraped a service that evicted something, for half a minute."""
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed (Debian package prometheus)")
    with watched(tmp_path_factory.mktemp("prometheus")) as it:
        yield it


def test_the_service_is_scraped_and_the_rules_are_loaded(prometheus):
    targets = prometheus.ask("targets")["activeTargets"]
    assert [target["health"] for target in targets] == ["up"], targets
    groups = prometheus.ask("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) == 12
    assert [rule["name"] for rule in rules if rule.get("lastError")] == []


@pytest.mark.parametrize(("board", "panel", "expression"), ALL, ids=[f"{b}: {p}" for b, p, _ in ALL])
def test_each_panel_shows_something(prometheus, board, panel, expression):
    assert prometheus.query(filled(expression)), expression


def test_the_page_shows_each_query_as_it_is_now():
    """docs/dashboards.md is made on a real Prometheus, not in each run: `make docs` does not write it."""
    page = (ROOT / "docs" / "dashboards.md").read_text()
    for board, panel, expression in ALL:
        assert f"### {panel}\n" in page, f"{board}: {panel}: run python -m docs.dashboards"
        assert f"```promql\n{expression.strip()}\n```" in page, (
            f"{board}: {panel}: run python -m docs.dashboards"
        )
