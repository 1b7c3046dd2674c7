"""The alert rules, as Prometheus' own tool judges them, and the page that each of them leads to."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "grafana" / "alerts.yml"
CASES = ROOT / "tests" / "data" / "alerts_test.yml"
ALERTS = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_prometheus_accepts_the_rules():
    status, said = promtool("check", "rules", str(RULES))
    assert status == 0, said
    assert f"{len(ALERTS)} rules found" in said


def test_each_alert_fires_when_it_should_and_not_before():
    status, said = promtool("test", "rules", str(CASES))
    assert status == 0, said


def test_a_rule_that_never_fires_would_be_noticed(tmp_path):
    """The cases above prove something: with one expression turned into nonsense they fail."""
    (tmp_path / "alerts.yml").write_text(RULES.read_text().replace("== 0\n", "== 7\n", 1))
    (tmp_path / "cases.yml").write_text(CASES.read_text().replace("../../grafana/alerts.yml", "alerts.yml"))
    status, said = promtool("test", "rules", str(tmp_path / "cases.yml"))
    assert status != 0
    assert "CachewardenDown" in said


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_each_alert_has_a_case_in_which_it_fires_one_in_which_it_does_not_and_a_page(alert):
    name = alert["alert"]
    tested = [
        case["exp_alerts"]
        for group in yaml.safe_load(CASES.read_text())["tests"]
        for case in group["alert_rule_test"]
        if case["alertname"] == name
    ]
    assert any(tested)
    assert not all(tested)
    page = (ROOT / alert["annotations"]["runbook"]).read_text()
    assert page.startswith(f"# {name}: ")
    assert f"Severity: {alert['labels']['severity']}." in page
    assert name in (ROOT / "docs" / "runbooks" / "README.md").read_text()


def test_there_is_no_page_without_an_alert():
    pages = {path.stem for path in (ROOT / "docs" / "runbooks").glob("*.md")} - {"README"}
    assert pages == {Path(alert["annotations"]["runbook"]).stem for alert in ALERTS}


def test_the_commands_of_the_pages_exist():
    known = (ROOT / "docs" / "reference" / "commands.md").read_text()
    for page in (ROOT / "docs" / "runbooks").glob("*.md"):
        for command in re.findall(r"cachewarden ([a-z]+)", page.read_text()):
            if f"`cachewarden {command}" in page.read_text():
                assert f"`{command}`" in known, f"{page.name}: cachewarden {command}"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_the_rules_ask_only_for_metrics_that_the_service_has(alert):
    page = (ROOT / "tests" / "data" / "metrics_page.txt").read_text()
    for metric in re.findall(r"cachewarden_\w+", alert["expr"]):
        assert f"# TYPE {metric} " in page, metric
