"""What `doctor` says of locations that other machines may use, and of how they are enforced meanwhile."""

import os
import re

import pytest
from tests.daemon.test_cli_screen import terminal

from cachewarden.cli.screen import plain
from cachewarden.cli.views.examining import examination_blocks
from cachewarden.doctor import Examination, FilesystemFindings, Grade
from cachewarden.doctor.coordination import coordination_finding
from cachewarden.doctor.finding import good, weaker
from cachewarden.mountinfo import mount_of
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import DAY, Policy

__all__ = ["terminal"]


def location(name, path, **keys):
    return LocationSpec(name, os.fsencode(path), Policy(), **keys)


def asked(at, *specs):
    """What is said of these locations on the mount of `at`."""
    fd = os.open(at, os.O_RDONLY)
    try:
        return coordination_finding(fd, mount_of(fd), specs)
    finally:
        os.close(fd)


def test_a_local_disk_needs_no_coordinator(tmp_path):
    assert asked(tmp_path, location("a", tmp_path)).grade is Grade.GOOD


def test_each_shared_location_is_named_with_what_happens_to_it(tmp_path):
    """On a disk where leases tell all; the one that is not shared is left out."""
    found = asked(
        tmp_path,
        location("alone", tmp_path / "x"),
        location("kept", tmp_path / "y", shared="yes"),
        location("idle", tmp_path / "z", shared="yes", shared_without_agents="idle", shared_idle=2 * DAY),
    )
    assert found.grade is Grade.WEAKER
    assert f"kept at {tmp_path}/y is measured and reported, and nothing goes" in found.means
    assert f"of idle at {tmp_path}/z goes only what is unused for 2 d" in found.means
    assert "alone" not in found.means
    assert "shared_without_agents" in found.advice


def test_where_nothing_tells_of_use_idle_takes_nothing_either():
    """A filesystem that somebody else serves: leases do not tell, whatever is configured."""
    found = asked("/proc/self", location("far", "/proc/self", shared_without_agents="idle"))
    assert "far at /proc/self: nothing goes" in found.means
    assert "local disk" in found.advice


def test_a_network_filesystem_that_is_said_to_be_nobody_elses_is_a_note():
    found = asked("/proc/self", location("mine", "/proc/self", shared="no"))
    assert (found.grade, "mine" in found.means) == (Grade.NOTE, True)


LONG = "who only stands in an entry is not seen, and on an overlay nothing goes, and so on, and so on"
WEAK = weaker("processes", LONG, "run as root with CAP_SYS_PTRACE; a sandbox may hide its first process")
FOUND = Examination(
    (good("kernel", "Linux 6.18 has what this version needs"), WEAK),
    (FilesystemFindings(b"/mnt", b"nfs4", (location("far", "/mnt/x"),), (weaker("clock", LONG),)),),
)


@pytest.mark.parametrize("width", [80, 120])
def test_what_to_do_stands_below_what_it_concerns_and_fits_the_terminal(terminal, width):
    it = terminal(width)
    it.screen.show([*examination_blocks(FOUND)])
    shown = re.sub(r"\x1b\[[0-9;]*m", "", it.text).splitlines()
    [do] = [line for line in shown if "Do: " in line]
    [kernel] = [line for line in shown if "Linux 6.18" in line]
    assert do.index("Do: ") == kernel.index("Linux")
    assert max(map(len, shown)) <= width, it.text


def test_the_last_line_names_what_is_weaker_and_where():
    text = "\n".join(line for block in examination_blocks(FOUND) for line in plain(block))
    assert text.endswith(
        "2 of 3 are weaker than they could be: processes, clock (/mnt). The rest is as promised."
    )
    assert "Do: run as root with CAP_SYS_PTRACE" in text
