"""The shipped unit files, read by systemd itself."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SHIPPED = Path(__file__).parent.parent.parent / "systemd"
INSTALL = SHIPPED.parent / "docs/install.md"
UNITS = {"system": SHIPPED / "cachewarden.service", "user": SHIPPED / "user" / "cachewarden.service"}

# Each of them hides caches, or the processes that use them, and evicting would go on blindly.
BLINDING = {
    "PrivateTmp",
    "ProtectHome",
    "ProtectProc",
    "ProcSubset",
    "PrivateUsers",
    "PrivatePIDs",
    "PrivateDevices",
    "InaccessiblePaths",
    "TemporaryFileSystem",
    "RootDirectory",
    "DynamicUser",
    "User",
}


def settings(scope: str) -> dict[str, str]:
    pairs = re.findall(r"^(\w+)=(.*)$", UNITS[scope].read_text(), re.MULTILINE)
    assert len(pairs) == len(dict(pairs)), "a setting that is given twice"
    return dict(pairs)


def need(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed; CI installs it with systemd")


def with_a_command_that_exists(scope: str, folder: Path) -> Path:
    """The unit with `cachewarden` replaced: systemd checks that what it would run is there."""
    unit = folder / "cachewarden.service"
    unit.write_text(UNITS[scope].read_text().replace("/usr/bin/cachewarden", "/usr/bin/true"))
    return unit


@pytest.mark.parametrize("scope", UNITS)
def test_systemd_understands_every_line(scope, tmp_path):
    need("systemd-analyze")
    unit = with_a_command_that_exists(scope, tmp_path)
    checked = subprocess.run(
        ["systemd-analyze", f"--{scope}", "verify", "--man=no", "--recursive-errors=no", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_line_that_systemd_does_not_know_would_be_noticed(tmp_path):
    need("systemd-analyze")
    unit = with_a_command_that_exists("system", tmp_path)
    unit.write_text(unit.read_text().replace("ProtectClock=", "ProtectClocks="))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ProtectClocks" in checked.stderr


@pytest.mark.parametrize("scope", UNITS)
def test_nothing_blinds_the_service(scope):
    assert not BLINDING & settings(scope).keys()


@pytest.mark.parametrize("scope", UNITS)
def test_it_is_started_checked_reloaded_and_left_alone_when_misconfigured(scope):
    unit = settings(scope)
    command = "/usr/bin/cachewarden" + (" --user" if scope == "user" else "")
    assert unit["Type"] == "notify"
    assert unit["ExecStartPre"] == f"-{command} config check"
    assert unit["ExecStart"] == f"{command} run"
    assert unit["ExecReload"] == "kill -HUP $MAINPID"
    assert unit["RestartPreventExitStatus"] == "2"
    assert int(unit["WatchdogSec"]) > 0
    assert int(unit["TimeoutStopSec"]) >= 30
    assert unit["RuntimeDirectoryPreserve"] == "yes", "locks of a running `once` would vanish"


def test_the_system_service_has_the_capabilities_of_its_job_and_no_others():
    assert set(settings("system")["CapabilityBoundingSet"].split()) == {
        "CAP_SYS_ADMIN",
        "CAP_DAC_OVERRIDE",
        "CAP_DAC_READ_SEARCH",
        "CAP_FOWNER",
        "CAP_CHOWN",
        "CAP_LEASE",
        "CAP_SYS_PTRACE",
        "CAP_SETUID",
        "CAP_SETGID",
    }


def exposure(scope: str, folder: Path) -> float:
    """How systemd rates a unit, from 0 to 10."""
    need("systemd-analyze")
    unit = with_a_command_that_exists(scope, folder)
    said = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return float(re.search(r"exposure level for \S+: ([\d.]+)", said)[1])


def test_it_is_hardened_as_far_as_the_job_allows(tmp_path):
    # What is left by home directories, processes and SYS_ADMIN, which it must have.
    assert exposure("system", tmp_path) <= 4.2


@pytest.mark.parametrize("scope", UNITS)
def test_the_exposure_on_record_is_what_this_systemd_finds(scope, tmp_path):
    need("systemd-analyze")
    recorded = re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", INSTALL.read_text(), re.MULTILINE)
    assert recorded
    said = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True, check=True).stdout
    for version, *found in recorded:
        if said.split()[1] == version:
            assert exposure(scope, tmp_path) == float(dict(zip(UNITS, found, strict=True))[scope])


@pytest.mark.root
def test_the_directories_of_the_snippet_are_made_as_it_says(tmp_path, needs_root):
    need("systemd-tmpfiles")
    subprocess.run(
        [
            "systemd-tmpfiles",
            "--create",
            f"--root={tmp_path}",
            str(SHIPPED / "tmpfiles" / "cachewarden.conf"),
        ],
        check=True,
        capture_output=True,
    )
    assert (tmp_path / "run/cachewarden").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "run/cachewarden/locks").stat().st_mode & 0o777 == 0o700
