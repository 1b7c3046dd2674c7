"""`python -m docs.transcripts`: play the stories in a booted machine and write docs/transcripts.md anew.

As root, with the Debian packages systemd-container, prometheus, curl and jq. It takes about twenty minutes,
because alerts wait for as long as their rules say. `--hurry` makes minutes of them seconds, and prints the
page instead: to try a story.
"""

import argparse
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.system.machine import Machine, machine

_PAGE = Path(__file__).parents[1] / "transcripts.md"
_STORIES = "env PYTHONPATH=/src /opt/cachewarden/bin/python -m docs.transcripts.stories"
# What the machine shows of where it was made, and what people would see there.
_SAID = (("/src", "~/cachewarden"), ("root@box", "box"))
_LONGER = "[Service]\nTimeoutStartSec=1800\n"
_PROMETHEUS = """
global: {scrape_interval: 5s, evaluation_interval: 5s}
rule_files: [/etc/prometheus/alerts.yml]
scrape_configs:
  - job_name: cachewarden
    static_configs: [{targets: ["127.0.0.1:9843"]}]
"""
_HEAD = """# Transcripts

What really happens, from the first command to the end of an alert: played in a booted systemd on {day}, with
nobody at the keyboard ({versions}).
`python -m docs.transcripts` plays it anew, and writes this page.
"""


def main() -> int:
    """0, or an AssertionError with what went wrong in the machine."""
    parser = argparse.ArgumentParser(prog="python -m docs.transcripts", description=__doc__)
    parser.add_argument("--hurry", action="store_true", help="alerts wait for seconds; print, write nothing")
    hurry = parser.parse_args().hurry
    with machine() as made:
        report = _play(made, hurry=hurry)
    text = _page(report)
    if hurry:
        sys.stdout.write(text)
    else:
        _PAGE.write_text(text, encoding="utf-8")
    return 0


def _play(made: Machine, *, hurry: bool) -> dict[str, list[dict[str, str]]]:
    rules = (made.root / "src/grafana/alerts.yml").read_text(encoding="utf-8")
    made.write("/etc/prometheus/alerts.yml", re.sub(r"for: (\d+)m", r"for: \1s", rules) if hurry else rules)
    made.write("/etc/prometheus/prometheus.yml", _PROMETHEUS)
    made.write("/etc/hostname", "box\n")
    made.write("/etc/systemd/system/inside.service.d/longer.conf", _LONGER)
    # The Debian packages' own configuration of services that have nothing to do with this.
    made.prepare("systemctl", "disable", "--quiet", "prometheus")
    made.prepare("useradd", "anna")
    said = made.prepare("make", "--no-print-directory", "-C", "/src", "install")
    # What pip says of the index that this machine has is nobody else's.
    made.write("/installed", re.sub(r"^WARNING: .*\n", "", said, flags=re.MULTILINE))
    return made.boot(_STORIES, 1800)


def _page(report: dict[str, list[dict[str, str]]]) -> str:
    wrong = report.pop("wrong", None)
    assert not wrong, wrong
    versions = ", ".join(each["said"] for each in report.pop("versions"))
    parts = [_HEAD.format(day=datetime.now(UTC).strftime("%-d %B %Y"), versions=versions)]
    for title, steps in report.items():
        parts.append(f"## {title}\n")
        for step in steps:
            parts += [f"{step['said']}\n"] if step["said"] else []
            parts += [f"```console\n{step['shown']}```\n"] if step["shown"] else []
    text = "\n".join(parts)
    for made, said in _SAID:
        text = text.replace(made, said)
    return text


if __name__ == "__main__":
    sys.exit(main())
