"""The Grafana dashboards: made by the code beside them, and every query answered by a real Prometheus."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from tests.system.command import Warden, free_port

# One Prometheus for all of them.
pytestmark = pytest.mark.xdist_group("prometheus")

ROOT = Path(__file__).parents[2]
BOARDS = sorted((ROOT / "grafana").glob("*.json"))
MIB = 1 << 20

# As Grafana would fill them in: everything chosen, and a scrape each second.
VARIABLES = {
    "$__rate_interval": "30s",
    "$node": ".*",
    "$location": ".*",
    "$path": ".*",
    "$user": ".*",
    "[24h]": "[30s]",
    "[6h]": "[30s]",
    "[1h]": "[30s]",
}


def queries(board):
    """(panel, expression) of all panels, also of those in rows."""
    found = []
    for panel in json.loads(board.read_text())["panels"]:
        for each in [panel, *panel.get("panels", [])]:
            found += [(each["title"], target["expr"]) for target in each.get("targets", [])]
    return found


ALL = [(board.stem, title, expression) for board in BOARDS for title, expression in queries(board)]


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


class Prometheus:
    """A real one, which scrapes the given targets each second."""

    def __init__(self, base, targets):
        self.url = f"http://127.0.0.1:{free_port()}"
        rules = ROOT / "grafana" / "alerts.yml"
        config = base / "prometheus.yml"
        config.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    "rule_files": [str(rules)],
                    "scrape_configs": [
                        {"job_name": "cachewarden", "static_configs": [{"targets": list(targets)}]}
                    ],
                }
            )
        )
        self._log = (base / "prometheus.log").open("wb")
        self._child = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={base}/tsdb",
                f"--web.listen-address={urllib.parse.urlsplit(self.url).netloc}",
            ],
            stdout=self._log,
            stderr=self._log,
        )

    def stop(self):
        self._child.terminate()
        self._child.wait(30)
        self._log.close()

    def ask(self, path, **parameters):
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        return self.ask("query", query=expression)["result"]

    def until(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if found := self.query(expression):
                    return found
            except OSError:
                assert self._child.poll() is None, "Prometheus ended"
            time.sleep(0.3)
        raise AssertionError(f"nothing for {expression}")


def make(path, size):
    """An entry, made by a process that ends: who makes an entry holds it while he lives."""
    code = (
        "import os, sys; os.mkdir(sys.argv[1]); open(sys.argv[1] + '/f', 'wb').write(bytes(int(sys.argv[2])))"
    )
    subprocess.run([sys.executable, "-c", code, path, str(size)], check=True)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """It has scraped a service that evicted something, for half a minute."""
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed (Debian package prometheus)")
    base = tmp_path_factory.mktemp("prometheus")
    warden = Warden(str(base), {"max_size": "2MiB", "hard_max_size": "64MiB", "min_free": "1MiB"})
    warden.daemon |= {"interval": "2s", "settle": "100ms", "metrics_users": True}
    for name in ("one", "two"):
        os.mkdir(base / name)
        warden.location(name, str(base / name))
    with warden.service() as service:
        it = Prometheus(base, [urllib.parse.urlsplit(service.url).netloc])
        try:
            it.until("cachewarden_location_bytes")
            make(str(base / "one" / "first"), MIB)
            it.until('cachewarden_location_entries{location="one"} == 1')
            for number in range(3):
                make(str(base / "one" / f"e{number}"), MIB)
            it.until("sum(cachewarden_evictions_total) >= 2")
            # A counter with a reason is there from the first eviction on, and has grown with the next one.
            for number in range(3, 6):
                make(str(base / "one" / f"e{number}"), MIB)
            make(str(base / "two" / "grows"), MIB)
            it.until("sum(rate(cachewarden_evicted_bytes_total[30s])) > 0")
            it.until('delta(cachewarden_location_bytes{location="two"}[30s]) > 0')
            yield it
        finally:
            it.stop()


def test_the_service_is_scraped_and_the_rules_are_loaded(prometheus):
    targets = prometheus.ask("targets")["activeTargets"]
    assert [target["health"] for target in targets] == ["up"], targets
    groups = prometheus.ask("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) == 12
    assert [rule["name"] for rule in rules if rule.get("lastError")] == []


@pytest.mark.parametrize(("board", "panel", "expression"), ALL, ids=[f"{b}: {p}" for b, p, _ in ALL])
def test_each_panel_shows_something(prometheus, board, panel, expression):
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression, f"a variable that the test does not know: {expression}"
    assert prometheus.query(expression), expression
