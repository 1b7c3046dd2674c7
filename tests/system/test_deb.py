"""The Debian package: built, looked at by lintian, and installed in a booted systemd without network."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.system.deb_checks import CHECKS
from tests.system.machine import REPOSITORY, machine

# One package and one machine for all of them.
pytestmark = [pytest.mark.root, pytest.mark.xdist_group("systemd"), pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package, built as `make deb` builds it."""
    for program in ("dpkg-deb", "/usr/bin/python3"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not there: not a Debian")
    out = tmp_path_factory.mktemp("deb")
    done = subprocess.run(
        [REPOSITORY / "systemd/deb/build", "python3", out], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def report(package):
    """What was found inside, by the name of the check."""
    if shutil.which("systemd-nspawn") is None:
        pytest.skip("systemd-nspawn is not installed (Debian package systemd-container)")
    with machine() as made:
        shutil.copy(package, made.root / "package.deb")
        # Images for containers have one, and it forbids a package to start what it brings.
        (made.root / "usr/sbin/policy-rc.d").unlink(missing_ok=True)
        program = "env PYTHONPATH=/src /usr/bin/python3 -B -m tests.system.deb_checks /package.deb"
        yield made.boot(program)


def test_its_name_says_version_and_architecture_and_it_runs_with_the_python_it_was_built_for(package):
    fields = "Package", "Version", "Architecture", "Depends"
    said = subprocess.run(["dpkg-deb", "-f", package, *fields], capture_output=True, text=True, check=True)
    found = dict(line.split(": ", 1) for line in said.stdout.splitlines())
    assert package.name == "cachewarden_{Version}_{Architecture}.deb".format(**found)
    version = subprocess.run(
        ["/usr/bin/python3", "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    major, minor = map(int, version.split())
    assert f"python3 (>= {major}.{minor}), python3 (<< {major}.{minor + 1})" in found["Depends"]


def test_lintian_finds_no_error_and_nothing_to_warn_of(package):
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    done = subprocess.run(
        ["lintian", "--fail-on", "error,warning", package], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_override_has_its_reason():
    lines = Path(REPOSITORY / "systemd/deb/lintian-overrides").read_text(encoding="utf-8").splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        assert line.startswith("#") or before.startswith("#"), line


@pytest.mark.parametrize("check", [check.__name__ for check in CHECKS])
def test_under_systemd(needs_root, report, check):
    if wrong := report.get(check, "it was not reached"):
        pytest.fail(wrong, pytrace=False)
