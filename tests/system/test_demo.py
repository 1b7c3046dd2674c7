"""The demo does what it promises, for root and for anybody else."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2]


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
def test_the_demo_plays_for_an_ordinary_user(needs_root, tmp_path):
    """In a user namespace: another user id and no capability, and yet this interpreter can be read."""
    user = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if subprocess.run([*user, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("user namespaces are switched off on this machine")
    _judge(_play(str(tmp_path), *user), str(tmp_path))
