"""The man pages: made from the reference, and readable on a terminal of 80 columns."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
page = runpy.run_path(str(ROOT / "docs" / "man" / "roff.py"))["page"]
PAGES = sorted((ROOT / "docs" / "man").glob("*.[58]"))


def shown(path, width=80):
    """A page as man shows it, and what it complains of."""
    if shutil.which("man") is None:
        pytest.skip("man is not installed (Debian packages man-db and groff-base)")
    done = subprocess.run(
        ["man", "--warnings", "-l", str(path)],
        env={**os.environ, "MANWIDTH": str(width), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def test_the_pages_are_what_the_reference_makes():
    done = subprocess.run(
        [sys.executable, "-m", "docs.man", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
@pytest.mark.parametrize("width", [60, 80, 160])
def test_nothing_is_wider_than_the_terminal_or_wrong(path, width):
    text, complaints = shown(path, width)
    assert complaints == ""
    prose = [line for line in text.splitlines() if not line.startswith("           ")]  # not examples
    assert max(map(len, prose)) <= width


def test_each_command_and_each_key_of_the_reference_is_there():
    commands, _ = shown(ROOT / "docs" / "man" / "cachewarden.8")
    for line in (ROOT / "docs" / "reference" / "commands.md").read_text().splitlines():
        if line.startswith("## "):
            assert line[3:].replace("`", "").upper() in commands
    keys, _ = shown(ROOT / "docs" / "man" / "cachewarden.toml.5")
    for key in ("max_size", "opener_hold", "evict_checkpoints", "ignore_processes", "delegate"):
        assert f"       {key}" in keys


def test_what_looks_like_a_request_is_text(tmp_path):
    markdown = "# T\n\n## S\n\n`.SH evil`\n'and this\n\n```\n.de x\n\\n a-b\n```\n\n"
    markdown += "| a | b |\n|---|---|\n| .x | y |\n"
    path = tmp_path / "x.8"
    path.write_text(page("X", 8, r"x \- y", markdown))
    text, complaints = shown(path)
    assert complaints == ""
    for line in (".SH evil", "'and this", ".de x", "\\n a-b", ".x"):
        assert line in text, line


def test_a_middle_column_says_what_it_is():
    markdown = "# T\n\n| key | default | meaning |\n|---|---|---|\n| `a` | `1` | first |\n"
    assert ".TP\n\\fBa\\fR\ndefault: \\fB1\\fR; first\n" in page("X", 5, "x", markdown)
