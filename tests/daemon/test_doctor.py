"""What `doctor` tries is really tried: on filesystems that keep their word and on some that do not."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from cachewarden.clock import SetClock, SystemClock
from cachewarden.doctor import Grade, Own, examine
from cachewarden.doctor.finding import named
from cachewarden.doctor.memory import memory_findings
from cachewarden.doctor.stranger import stranger
from cachewarden.doctor.trials import trial_findings
from cachewarden.errors import LedgerTooNewError
from cachewarden.ledger import Ledger, open_ledger
from cachewarden.spec import LocationSpec, Territory
from cachewarden_policies.policy import MINUTE, Policy

DISKS = {"ext4": "-F", "xfs": "-f", "btrfs": "-f"}


@contextmanager
def mounted(point, *options):
    os.makedirs(point, exist_ok=True)
    subprocess.run(["mount", *options, point], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=True)


@contextmanager
def disk(tmp_path, kind, options=()):
    """A filesystem of its own, with the location `cache` on it."""
    if kind == "tmpfs":
        arguments = ["-t", "tmpfs", "tmpfs"]
    else:
        image = tmp_path / "image"
        subprocess.run(["truncate", "-s", "400M", image], check=True)
        subprocess.run([f"mkfs.{kind}", "-q", DISKS[kind], image], check=True)
        arguments = ["-o", ",".join(("loop", *options)), image]
    with mounted(tmp_path / "disk", *arguments) as point:
        (point / "cache/e").mkdir(parents=True)
        (point / "cache/e/f").write_bytes(b"x")
        yield point / "cache"


def own(tmp_path, *, user_mode=False):
    """What is ours, in a directory of the test's."""
    state, runtime = os.fsencode(tmp_path / "state"), os.fsencode(tmp_path / "run")
    return Own(state, runtime, user_mode, 5 * MINUTE)


def look(tmp_path, *roots, clock=None):
    """The findings for these locations, by check; those of the machine under their name too."""
    specs = tuple(
        LocationSpec(f"l{number}", os.fsencode(root), Policy()) for number, root in enumerate(roots)
    )
    return examine(Territory(specs), own(tmp_path), clock or SystemClock())


def grades(findings):
    return {each.check: each.grade for each in findings}


def tree(top):
    """Every name below with its change time: equal when nothing was touched."""
    found = {}
    for base, directories, files in os.walk(top):
        for each in (*directories, *files):
            path = os.path.join(base, each)
            found[path] = os.lstat(path).st_ctime_ns
    return found


@pytest.mark.root
@pytest.mark.parametrize("kind", ["tmpfs", *DISKS])
def test_a_local_filesystem_keeps_every_promise_and_nothing_is_left_on_it(tmp_path, needs_root, kind):
    with disk(tmp_path, kind) as root:
        before = tree(root)
        [found] = look(tmp_path, root).filesystems
        assert tree(root) == before
        assert os.listdir(root.parent) in (["cache"], ["cache", "lost+found"], ["lost+found", "cache"])
    told = grades(found.findings)
    assert {"lease", "mapping", "container", "rename", "opens", "clock", "last use"} <= told.keys()
    assert Grade.WEAKER not in told.values(), found.findings
    assert found.type == kind.encode()
    assert found.point == os.fsencode(tmp_path / "disk")


@pytest.mark.root
def test_an_overlay_is_found_to_hide_mappings(tmp_path, needs_root):
    with disk(tmp_path, "tmpfs") as root:
        for name in ("low", "up", "work"):
            (root.parent / name).mkdir()
        layers = f"lowerdir={root.parent}/low,upperdir={root.parent}/up,workdir={root.parent}/work"
        with mounted(tmp_path / "over", "-t", "overlay", "-o", layers, "overlay") as over:
            (over / "cache").mkdir()
            [found] = look(tmp_path, over / "cache").filesystems
            assert os.listdir(over) == ["cache"]
    told = grades(found.findings)
    weak = {check for check, grade in told.items() if grade is Grade.WEAKER}
    assert weak == {"filesystem", "mapping", "opens"}
    assert told["lease"] is Grade.GOOD


@pytest.mark.root
def test_mount_options_that_cost_something_are_named(tmp_path, needs_root):
    with disk(tmp_path, "ext4", ["noatime"]) as root:
        [found] = look(tmp_path, root).filesystems
        assert grades(found.findings)["last use"] is Grade.WEAKER
        subprocess.run(["mount", "-o", "remount,ro", root.parent], check=True)
        [found] = look(tmp_path, root).filesystems
        told = grades(found.findings)
        assert told["writable"] is Grade.WEAKER
        assert told["trash"] is Grade.WEAKER
        assert "lease" not in told


@pytest.mark.root
def test_a_filesystem_of_somebody_else_is_not_judged_by_one_lease(tmp_path, needs_root):
    """What the mount table calls it decides, also where leases and all would work."""
    with disk(tmp_path, "tmpfs") as root:
        [found] = look(tmp_path, root).filesystems
        assert grades(found.findings)["filesystem"] is Grade.GOOD
    assert grades(look(tmp_path, "/proc/self").filesystems[0].findings)["filesystem"] is Grade.WEAKER


def test_locations_on_one_mount_are_tried_once_and_all_named(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    [found] = look(tmp_path, tmp_path / "a", tmp_path / "b").filesystems
    assert [each.name for each in found.locations] == ["l0", "l1"]
    assert len(found.findings) == len({each.check for each in found.findings})


def test_a_location_that_cannot_be_looked_at_is_a_finding_and_stops_nothing(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "file").write_bytes(b"")
    found = look(tmp_path, tmp_path / "file", tmp_path / "a")
    [(spec, finding)] = found.unavailable
    assert (spec.name, finding.grade) == ("l0", Grade.WEAKER)
    assert "is not a directory" in finding.means
    assert len(found.filesystems) == 1
    assert not found.guaranteed


def test_a_file_server_whose_clock_is_off_is_noticed(tmp_path):
    (tmp_path / "a").mkdir()
    hour_ahead = SetClock(wall_ns=SystemClock().wall_ns() + 3600 * 10**9)
    [found] = look(tmp_path, tmp_path / "a", clock=hour_ahead).filesystems
    clock = next(each for each in found.findings if each.check == "clock")
    assert clock.grade is Grade.WEAKER
    assert "3600" in clock.means or "3599" in clock.means


@pytest.mark.root
def test_who_may_not_write_there_is_told_that_there_can_be_no_trash(tmp_path, needs_root):
    """An ordinary user beside a cache of root's: nothing more is tried."""
    (tmp_path / "a").mkdir()
    fd = os.open(tmp_path / "a", os.O_RDONLY)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setresuid(65534, 65534, 65534)
            told = grades(trial_findings(fd, os.fsencode(tmp_path / "a"), SystemClock()))
            status = 0 if told == {"trash": Grade.WEAKER} else 2
        finally:
            os._exit(status)
    os.close(fd)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.root
def test_a_stranger_has_a_namespace_of_its_own_and_leaves(tmp_path, needs_root):
    (tmp_path / "f").write_bytes(b"x")
    fd = os.open(tmp_path, os.O_RDONLY)
    with stranger(fd, b"f") as there:
        assert there
    with stranger(fd, b"missing") as there:
        assert not there
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        assert str(tmp_path) not in mounts.read()
    os.close(fd)


def ledgers(tmp_path):
    return {each.check: each for each in memory_findings(own(tmp_path), 10**18)}


def test_a_sound_ledger_a_damaged_one_and_none_are_told_apart_and_left_as_they_are(tmp_path):
    assert ledgers(tmp_path)["state"].grade is Grade.NOTE
    ledger: Ledger = open_ledger(os.fsencode(tmp_path / "state"), 10**18)
    ledger.close()
    found = ledgers(tmp_path)
    assert {found[each].grade for each in ("state", "ledger", "pins")} == {Grade.GOOD}
    path = tmp_path / "state/ledger.sqlite"
    path.write_bytes(b"not a database at all" * 50)
    before = tree(tmp_path / "state")
    assert ledgers(tmp_path)["ledger"].grade is Grade.WEAKER
    assert "damaged" in ledgers(tmp_path)["ledger"].means
    assert tree(tmp_path / "state") == before


def test_a_newer_ledger_is_named_as_such(tmp_path):
    open_ledger(os.fsencode(tmp_path / "state"), 10**18).close()
    path = tmp_path / "state/ledger.sqlite"
    content = bytearray(path.read_bytes())
    content[60:64] = (99).to_bytes(4, "big")
    path.write_bytes(content)
    with pytest.raises(LedgerTooNewError):
        open_ledger(os.fsencode(tmp_path / "state"), 10**18)
    assert "version 99" in ledgers(tmp_path)["ledger"].means


def test_a_state_directory_on_a_full_or_foreign_disk_is_noticed(tmp_path):
    (tmp_path / "state").mkdir()
    found = ledgers(tmp_path)
    assert found["state"].grade is Grade.GOOD
    assert found["service"].grade is Grade.WEAKER  # none is running
    assert os.listdir(tmp_path / "state") == []
    assert named(28) == "No space left on device (ENOSPC)"


SAID = """
import json, sys
from cachewarden.doctor.machine import machine_findings
print(json.dumps({each.check: [str(each.grade), each.means] for each in machine_findings(user_mode=False)}))
"""


def machine(*wrap):
    run = subprocess.run([*wrap, sys.executable, "-c", SAID], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


@pytest.mark.root
def test_what_the_machine_grants_is_told_and_each_right_that_is_missing_is_named(needs_root):
    full = machine()
    for check in ("kernel", "capabilities", "opens", "leases", "inotify"):
        assert full[check][0] == "good", full[check]
    less = machine("setpriv", "--bounding-set", "-sys_ptrace,-lease,-sys_admin")
    assert less["capabilities"][0] == "weaker"
    for name in ("CAP_SYS_PTRACE", "CAP_LEASE", "CAP_SYS_ADMIN"):
        assert name in less["capabilities"][1]
    assert "CAP_CHOWN" not in less["capabilities"][1]
    assert (less["opens"][0], less["processes"][0]) == ("weaker", "weaker")


@pytest.mark.root
def test_few_descriptors_and_a_pid_namespace_of_our_own_are_named(needs_root):
    few = machine("prlimit", "--nofile=1024:1024")
    assert few["descriptors"][0] == "weaker"
    assert "512 files" in few["descriptors"][1]
    inside = machine("unshare", "-pf", "--mount-proc")
    assert inside["processes"][0] == "weaker"
    assert "pid namespace" in inside["processes"][1]


@pytest.mark.root
def test_a_proc_that_hides_the_processes_of_others_is_noticed(needs_root):
    """Nothing in it refuses to be read: they are just not there."""
    hide = 'mount -t proc -o hidepid=invisible,gid=65533 proc /proc && exec "$@"'
    alone = ["unshare", "--mount", "--propagation", "private", "sh", "-c", hide, "sh"]
    hidden = machine(*alone, "setpriv", "--bounding-set", "-sys_ptrace")
    assert hidden["processes"][0] == "weaker"
    assert "hidepid" in hidden["processes"][1]
