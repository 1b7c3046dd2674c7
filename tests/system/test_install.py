"""`make install` and `make uninstall`, in a root filesystem of their own."""

import contextlib
import os
import shutil
import subprocess

import pytest
from tests.system.machine import machine

pytestmark = [pytest.mark.root, pytest.mark.xdist_group("systemd"), pytest.mark.timeout(600)]

KEPT = {"/etc/cachewarden/config.toml"}
SHARE = "/usr/local/share"


def files(root):
    """Every file of a root in which `make install` could have put something."""
    found = set()
    for place in ("etc", "opt", "usr/local", "usr/lib/systemd", "usr/share", "var/lib/cachewarden"):
        for at, _, names in os.walk(root / place):
            found.update(f"/{os.path.relpath(os.path.join(at, name), root)}" for name in names)
    return found


@contextlib.contextmanager
def with_proc(root):
    """The commands need /proc, which a machine that is not booted lacks."""
    subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", root / "proc"], check=True)


def test_uninstall_takes_what_install_brought_and_with_purge_also_what_was_kept(needs_root):
    with machine() as made, with_proc(made.root):
        for place in ("etc", "var/lib"):  # of a cachewarden of this machine
            shutil.rmtree(made.root / place / "cachewarden", ignore_errors=True)
        before = files(made.root)
        made.prepare("make", "-C", "/src", "install")
        brought = files(made.root) - before
        assert {
            f"{SHARE}/man/man8/cachewarden.8.gz",
            f"{SHARE}/man/man5/cachewarden.toml.5.gz",
            f"{SHARE}/bash-completion/completions/cachewarden",
            f"{SHARE}/zsh/site-functions/_cachewarden",
            f"{SHARE}/fish/vendor_completions.d/cachewarden.fish",
            f"{SHARE}/cachewarden/config.schema.json",
            f"{SHARE}/cachewarden/prometheus/alerts.yml",
            f"{SHARE}/cachewarden/dashboards/fleet.json",
            f"{SHARE}/cachewarden/logrotate.conf",
            "/usr/local/lib/tmpfiles.d/cachewarden.conf",
            "/etc/systemd/system/cachewarden.service",
            "/etc/systemd/system/multi-user.target.wants/cachewarden.service",
            "/etc/systemd/user/cachewarden.service",
            "/usr/local/bin/cachewarden",
        } <= brought
        made.prepare("cachewarden", "once")
        state = {each for each in files(made.root) - before if each.startswith("/var/lib/cachewarden/")}
        assert state
        said = made.prepare("make", "-C", "/src", "uninstall")
        assert "was not completed" not in said, said
        assert files(made.root) - before == KEPT | state
        made.prepare("make", "-C", "/src", "uninstall", "PURGE=1")
        assert files(made.root) - before == set()
        assert not (made.root / "opt/cachewarden").exists()
        assert not (made.root / "etc/cachewarden").exists()


def enabled(made):
    """Whether the service would be started when the machine boots."""
    return (made.root / "etc/systemd/system/multi-user.target.wants/cachewarden.service").is_symlink()


def test_with_a_wrong_configuration_nothing_is_enabled_and_what_is_disabled_stays_so(needs_root):
    wrong = '[policies.small]\nmax_size = "4Mib"\n'
    with machine() as made, with_proc(made.root):
        made.write("/etc/cachewarden/config.toml", wrong)
        with pytest.raises(AssertionError) as refused:
            made.prepare("make", "-C", "/src", "install")
        said = str(refused.value)
        assert "config.toml:2" in said, said
        assert "the configuration is wrong. When it is mended: systemctl enable --now cachewarden" in said, (
            said
        )
        assert "Installed." not in said, said
        assert not enabled(made)
        assert (made.root / "etc/cachewarden/config.toml").read_text() == wrong
        assert made.prepare("cachewarden", "--version")

        made.write("/etc/cachewarden/config.toml", "")
        said = made.prepare("make", "-C", "/src", "install")
        assert "Installed. The service is disabled." in said, said
        assert not enabled(made), "it was there before, and nobody had enabled it"
        assert (made.root / "etc/cachewarden/config.toml").read_text() == ""
