"""Fixtures that several test folders use."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How fast examples are made says something of the machine's load, and nothing of the code.
settings.register_profile("calm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
CALM, CI = settings.get_profile("calm"), "CI" in os.environ
# CI tries the same examples each time: what it says is about the change. Who changed what they are about
# wants many: `pytest --hypothesis-profile=deep`.
settings.register_profile("busy", CALM, max_examples=60, derandomize=CI)
settings.register_profile("deep", CALM, max_examples=2000)
settings.load_profile("busy")


@pytest.fixture
def abyss(tmp_path: Path) -> Iterator[Path]:
    """A place for trees of thousands of levels.

    pytest removes what tests leave by recursion, at the end of a later session, and that one fails then.
    """
    place = tmp_path / "abyss"
    place.mkdir()
    yield place
    subprocess.run(["rm", "-rf", place], check=True)


@pytest.fixture
def needs_root() -> None:
    """For tests with mounts, namespaces or other users; CI is root and runs them all."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it mounts filesystems, enters namespaces or acts as another user")
