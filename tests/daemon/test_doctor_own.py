"""What `doctor` says of our own memory and of the time, each tried on the real thing."""

import os
import subprocess
import sys
import time

import pytest

from cachewarden.clock import SystemClock
from cachewarden.doctor import Grade, Own
from cachewarden.doctor.clocks import clock_findings, kept_finding, stamps_finding
from cachewarden.doctor.memory import memory_findings
from cachewarden.enforce.clockwatch import ClockWatch
from cachewarden.kernel.adjtimex import Discipline, discipline
from cachewarden.ledger import Use, open_ledger
from cachewarden.ledger.disk import open_for_writing
from cachewarden.ledger.schema import STEPS
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import DAY, HOUR, MINUTE, Policy
from cachewarden_policies.situation import LastUseSource

SPEC = LocationSpec("cache", b"/srv/cache", Policy())
NOW = SystemClock().wall_ns()


@pytest.fixture
def own(tmp_path):
    """A state directory as the unit makes it, and the runtime directory beside it."""
    os.mkdir(tmp_path / "state", 0o700)
    return Own(os.fsencode(tmp_path / "state"), os.fsencode(tmp_path / "run"), False, 5 * MINUTE)


def remembered(own):
    """By check."""
    return {each.check: each for each in memory_findings(own, NOW)}


def timed(own):
    return {each.check: each for each in clock_findings(own, SystemClock())}


def fill(own, *names, used_ns=NOW, passed_ns=None):
    """A ledger with these entries."""
    with open_ledger(own.state_dir, NOW) as ledger:
        ledger.seen(SPEC, [(name, 1) for name in names], NOW)
        ledger.record_use(SPEC, dict.fromkeys(names, Use(used_ns, LastUseSource.OPENS)), NOW)
        if passed_ns:
            ledger.update_location(SPEC, NOW, last_pass_ns=passed_ns)
    return os.path.join(own.state_dir, b"ledger.sqlite")


def test_a_sound_ledger_is_told_with_what_it_holds_its_size_and_when_it_was_written(own):
    path = fill(own, b"a", b"b")
    os.utime(path, (0, 1_700_000_000))
    found = remembered(own)["ledger"]
    assert found.grade is Grade.GOOD
    kib = os.stat(path).st_size // 1024
    assert f"2 entries of 1 location on record, version {len(STEPS)}, {kib} KiB" in found.means
    assert found.means.endswith("last written 2023-11-14 22:13:20 UTC")


@pytest.mark.parametrize("harm", ["a page in the middle", "the end"])
def test_a_ledger_that_was_damaged_behind_its_first_page_is_found_out(own, harm):
    """Its head is as it should be: only reading it to the end tells."""
    path = fill(own, *(b"%d" % number for number in range(2000)))
    size = os.stat(path).st_size
    with open(path, "r+b") as file:
        if harm == "the end":
            file.truncate(size // 2)
        else:
            file.seek(size // 2 // 4096 * 4096)
            file.write(os.urandom(4096))
    found = remembered(own)["ledger"]
    assert found.grade is Grade.WEAKER
    assert "damaged" in found.means
    assert "sets it aside" in found.advice


def test_a_ledger_that_was_lost_stays_named_when_a_new_one_is_there(own):
    path = fill(own, b"a")
    with open(path, "wb") as file:
        file.write(b"nonsense" * 512)
    fill(own, b"a")
    found = remembered(own)
    assert found["ledger"].grade is Grade.GOOD
    [aside] = [name for name in os.listdir(own.state_dir) if b".damaged-" in name]
    assert found["set aside"].grade is Grade.NOTE
    assert f"{aside.decode()} (4 KiB)" in found["set aside"].means


def test_an_older_ledger_is_no_damage_and_the_copy_of_a_migration_is_named(own):
    open_for_writing(own.state_dir, NOW, STEPS[:1])[0].close()
    found = remembered(own)
    assert found["ledger"].grade is Grade.NOTE
    assert "0 entries of 0 locations on record, version 1," in found["ledger"].means
    assert f"brings it to version {len(STEPS)}" in found["ledger"].means
    fill(own, b"a")
    found = remembered(own)
    assert found["ledger"].grade is Grade.GOOD
    assert "ledger.sqlite.v1-" in found["copies"].means


def test_times_on_record_that_lie_ahead_are_counted(own):
    fill(own, b"a", b"b", used_ns=NOW + 40 * DAY)
    found = remembered(own)["ledger"]
    assert found.grade is Grade.NOTE
    assert "2 entries have times more than a day ahead" in found.means


@pytest.mark.root
def test_a_state_directory_on_a_full_disk_cannot_keep_what_passes_learn(needs_root, tmp_path):
    subprocess.run(["truncate", "-s", "64M", tmp_path / "image"], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", tmp_path / "image"], check=True)
    os.mkdir(tmp_path / "disk")
    subprocess.run(["mount", "-o", "loop", tmp_path / "image", tmp_path / "disk"], check=True)
    try:
        os.mkdir(tmp_path / "disk/state", 0o700)
        own = Own(os.fsencode(tmp_path / "disk/state"), b"/nonexistent", False, 5 * MINUTE)
        assert remembered(own)["state"].grade is Grade.GOOD
        subprocess.run(["sh", "-c", f"cat /dev/zero > {tmp_path}/disk/big 2> /dev/null"], check=False)
        found = remembered(own)["state"]
        assert found.grade is Grade.WEAKER
        assert "0 B free: too little" in found.means
        subprocess.run(["mount", "-o", "remount,ro", tmp_path / "disk"], check=True)
        assert "(EROFS)" in remembered(own)["state"].means
    finally:
        subprocess.run(["umount", "-l", tmp_path / "disk"], check=True)


@pytest.mark.root
def test_a_state_directory_that_others_may_change_is_not_trusted(needs_root, own):
    assert "root's, mode 0700" in remembered(own)["state"].means
    os.chmod(own.state_dir, 0o770)
    assert remembered(own)["state"].grade is Grade.WEAKER
    assert "mode 0770" in remembered(own)["state"].means
    os.chmod(own.state_dir, 0o700)
    os.chown(own.state_dir, 65534, 65534)
    found = remembered(own)["state"]
    assert found.grade is Grade.WEAKER
    assert found.advice == "chown root, and chmod 0700"


def test_the_service_that_a_user_is_told_to_start_is_his_own(own):
    theirs = Own(own.state_dir, own.runtime_dir, True, own.interval_ns)
    assert remembered(own)["service"].advice == "systemctl enable --now cachewarden"
    assert remembered(theirs)["service"].advice == "systemctl --user enable --now cachewarden"


def test_the_kernel_is_asked_about_the_clock_and_its_answer_is_read_at_the_right_place():
    before = int(time.time())
    found = discipline()
    assert before <= found.seconds <= int(time.time())
    assert found.max_error_ns >= 0


def test_a_clock_that_nobody_keeps_is_a_note_and_one_that_is_kept_says_how_well():
    """A note, because the host of a virtual machine may keep it."""
    kept = kept_finding(Discipline(True, 35_400_000, 0))
    assert (kept.grade, "35 ms" in kept.means) == (Grade.GOOD, True)
    alone = kept_finding(Discipline(False, 16 * 10**9, 0))
    assert (alone.grade, "timesyncd" in alone.advice) == (Grade.NOTE, True)


def test_a_clock_behind_the_last_pass_is_noticed_and_nothing_is_remembered(own):
    assert timed(own)["time on record"].grade is Grade.NOTE  # nothing to compare with
    fill(own, b"a", passed_ns=NOW - MINUTE)
    assert timed(own)["time on record"].grade is Grade.GOOD
    fill(own, b"a", passed_ns=NOW + 3 * DAY)
    found = timed(own)["time on record"]
    assert found.grade is Grade.WEAKER
    assert "the clock is 2 d 23 h behind the last pass" in found.means
    assert "wait for one interval (5 m)" in found.advice
    assert not os.path.exists(own.runtime_dir)


LATER = """
import sys
from cachewarden.clock import SystemClock
from cachewarden.doctor import Own
from cachewarden.doctor.clocks import clock_findings
state, run = (each.encode() for each in sys.argv[1:])
for each in clock_findings(Own(state, run, False, 300 * 10**9), SystemClock()):
    print(each.check, each.grade, each.means, sep="|")
"""


@pytest.mark.root
def test_a_clock_that_jumped_since_the_last_pass_is_noticed(needs_root, own):
    """In a time namespace whose boot clock is two hours on: the wall clock jumped, for whoever is in it."""
    fill(own, b"a", passed_ns=NOW)
    clock = SystemClock()
    ClockWatch(own.interval_ns, own.runtime_dir).look(clock.wall_ns(), clock.monotonic_ns())
    paths = [os.fsdecode(own.state_dir), os.fsdecode(own.runtime_dir)]
    for wrap, expected in (((), "good"), (("unshare", "-T", "--boottime", "7200"), "weaker")):
        command = [*wrap, sys.executable, "-c", LATER, *paths]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        check, grade, means = said.splitlines()[1].split("|")
        assert (check, grade) == ("time on record", expected), said
    assert "jumped back by 2 h" in means


def test_times_from_the_future_at_the_top_of_a_location_are_counted(tmp_path):
    for name in ("now", "ahead", "too"):
        (tmp_path / name).mkdir()
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        path = os.fsencode(tmp_path)
        now = SystemClock().wall_ns()
        assert stamps_finding(fd, path, now).grade is Grade.GOOD
        os.utime(tmp_path / "ahead", ns=(now, now + 2 * DAY + HOUR))
        found = stamps_finding(fd, path, now)
        assert found.grade is Grade.NOTE
        assert (
            f"of 3 at the top of {tmp_path}, 1 have times from the future (by up to 2 d 1 h)" in found.means
        )
    finally:
        os.close(fd)
