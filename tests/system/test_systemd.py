"""The installed service under a real systemd, booted in a container; `booted_checks.py` looks at it there."""

import shutil

import pytest
from tests.system.booted_checks import CHECKS
from tests.system.machine import machine

# One machine for all of them: it takes half a minute to install and boot.
pytestmark = [pytest.mark.root, pytest.mark.xdist_group("systemd"), pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def report():
    """What was found inside, by the name of the check."""
    if shutil.which("systemd-nspawn") is None:
        pytest.skip("systemd-nspawn is not installed (Debian package systemd-container)")
    with machine() as made:
        said = made.prepare("make", "-C", "/src", "install")
        assert "Installed. The service is enabled." in said, said
        # Inside there is no network, and it is installed once more there.
        made.prepare("/opt/cachewarden/bin/python", "-m", "pip", "install", "--quiet", "hatchling")
        yield made.boot("env PYTHONPATH=/src /opt/cachewarden/bin/python -m tests.system.booted_checks")


@pytest.mark.parametrize("check", [check.__name__ for check in CHECKS])
def test_under_systemd(needs_root, report, check):
    if wrong := report.get(check, "it was not reached"):
        pytest.fail(wrong, pytrace=False)
