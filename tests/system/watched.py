"""A service that evicted something, and a real Prometheus that scraped it: what dashboards are asked of."""

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.system.command import Warden, free_port

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


def panels(board: Path) -> list[dict[str, Any]]:
    """All panels of a dashboard, also those in rows."""
    found = json.loads(board.read_text())["panels"]
    return [each for panel in found for each in (panel, *panel.get("panels", []))]


def filled(expression: str) -> str:
    """A panel's query as Grafana sends it. Raises AssertionError for a variable that nobody knows here."""
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression, f"a variable that is not known here: {expression}"
    return expression


class Prometheus:
    """A real one, which scrapes the given targets each second."""

    def __init__(self, base: Path, targets: Sequence[str]) -> None:
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

    def stop(self) -> None:
        """End it."""
        self._child.terminate()
        self._child.wait(30)
        self._log.close()

    def ask(self, path: str, **parameters: str) -> Any:
        """What its API answers."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression has now."""
        return self.ask("query", query=expression)["result"]

    def until(self, expression: str, seconds: float = 60) -> list[dict[str, Any]]:
        """The same, once there are any. Raises AssertionError when there are none."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if found := self.query(expression):
                    return found
            except OSError:
                assert self._child.poll() is None, "Prometheus ended"
            time.sleep(0.3)
        raise AssertionError(f"nothing for {expression}")


def make(path: Path, size: int) -> None:
    """An entry, made by a process that ends: who makes an entry holds it while he lives."""
    code = (
        "import os, sys; os.mkdir(sys.argv[1]); open(sys.argv[1] + '/f', 'wb').write(bytes(int(sys.argv[2])))"
    )
    subprocess.run([sys.executable, "-c", code, str(path), str(size)], check=True)


@contextlib.contextmanager
def watched(base: Path) -> Iterator[Prometheus]:
    """Prometheus, after it has scraped a service on `base` that evicted something, for half a minute."""
    warden = Warden(str(base), {"max_size": "2MiB", "hard_max_size": "64MiB", "min_free": "1MiB"})
    warden.daemon |= {"interval": "2s", "settle": "100ms", "metrics_users": True}
    for name in ("one", "two"):
        os.mkdir(base / name)
        warden.location(name, str(base / name))
    with warden.service() as service:
        it = Prometheus(base, [urllib.parse.urlsplit(service.url).netloc])
        try:
            it.until("cachewarden_location_bytes")
            make(base / "one" / "first", MIB)
            it.until('cachewarden_location_entries{location="one"} == 1')
            for number in range(3):
                make(base / "one" / f"e{number}", MIB)
            it.until("sum(cachewarden_evictions_total) >= 2")
            # A counter with a reason is there from the first eviction on, and has grown with the next one.
            for number in range(3, 6):
                make(base / "one" / f"e{number}", MIB)
            make(base / "two" / "grows", MIB)
            it.until("sum(rate(cachewarden_evicted_bytes_total[30s])) > 0")
            it.until('delta(cachewarden_location_bytes{location="two"}[30s]) > 0')
            yield it
        finally:
            it.stop()
