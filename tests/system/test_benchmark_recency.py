"""The comparison with others that hear of opens, as `make bench` runs it but small: what it says is true."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_MISSED = re.compile(r"([\d,]+) of ([\d,]+) (pairs|opened entries) missed")


def missed(text):
    """(missed, of how many) of pairs and of entries."""
    return {what: (count, of) for count, of, what in _MISSED.findall(text)}


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_we_miss_nothing_and_the_others_miss_every_pair(tmp_path):
    output = tmp_path / "table.md"
    command = [sys.executable, "-m", "benchmarks", "--only", "recency", "--files", "10", "-o", output]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split(" | ") for line in output.read_text().splitlines() if "µs" in line]
    assert [row[2].partition(":")[0] for row in rows] == ["watchdog", "inotify marks"] * 3
    pairs = ["72", "1,440", "5"]
    for number, (what, _, peer, *_) in enumerate(rows):
        count = pairs[number // 2]
        assert missed(peer)["pairs"] == (count, count)
        if number % 2 == 0:
            assert missed(what)["pairs"] == ("0", count)
            assert missed(what)["opened entries"][0] == "0"
            assert "0 overflows" in what
    assert output.read_text().count("until opens in") == 2
