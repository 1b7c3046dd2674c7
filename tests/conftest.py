"""Fixtures that several test folders use."""

import os

import pytest


@pytest.fixture
def needs_root() -> None:
    """For tests with mounts, namespaces or other users; CI is root and runs them all."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it mounts filesystems, enters namespaces or acts as another user")
