"""The demo does what it promises, for root and for anybody else."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2]
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def _play(base: str, *prefix: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "TMPDIR": base,
        "HOME": base,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [*prefix, sys.executable, "-m", "tests.system.demo"],
        cwd=HERE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _judge(done: subprocess.CompletedProcess[str], base: str) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert "everything is cleaned up" in done.stdout
    assert "\x1b" not in done.stdout, "colours in a pipe"
    assert [name for name in os.listdir(base) if name.startswith("cachewarden-demo")] == []


def test_the_demo_plays_within_its_two_minutes_and_leaves_nothing_behind(tmp_path):
    """Its own expectations fail it when the service does not do its work."""
    started = time.monotonic()
    _judge(_play(str(tmp_path)), str(tmp_path))
    assert time.monotonic() - started < 120


@pytest.mark.root
def test_the_demo_plays_for_an_ordinary_user(needs_root):
    """As nobody, who sees no other user's processes and may lease only what is his own."""
    reachable = subprocess.run([*NOBODY, sys.executable, "-c", "import cachewarden"], cwd=HERE, check=False)
    if reachable.returncode != 0:
        pytest.skip("another user cannot read this source tree, so the demo cannot run as one here")
    # Not tmp_path: pytest's own directories are closed to other users.
    with tempfile.TemporaryDirectory() as playground:
        os.chown(playground, 65534, 65534)
        _judge(_play(playground, *NOBODY), playground)
