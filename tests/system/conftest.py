"""Fixtures of the system tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.command import Warden
from tests.system.users import ground


@pytest.fixture
def root(tmp_path: Path) -> str:
    """An empty cache root."""
    path = str(tmp_path / "root")
    os.mkdir(path)
    return path


@pytest.fixture
def warden(tmp_path: Path, root: str) -> Warden:
    """The command with one location, `cache`, over `root`; a policy without limits so far."""
    made = Warden(str(tmp_path / "warden"))
    made.location("cache", root)
    return made


@pytest.fixture
def base(needs_root: None) -> Iterator[str]:
    """A directory that other users reach, on a filesystem of its own."""
    with ground() as made:
        yield made
