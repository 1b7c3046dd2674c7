"""A wall clock that jumps: what is noticed of it, by whom, and for how long."""

import os

import pytest

from cachewarden.clock import SystemClock, boot_id
from cachewarden.enforce.clockwatch import ClockWatch
from cachewarden.ledger import ClockMark, read_mark, write_mark
from cachewarden_policies.policy import DAY, HOUR, MINUTE, SECOND

NOW = 1_700_000_000 * SECOND
BOOT = 10**13
YEAR = 365 * DAY


@pytest.fixture
def run(tmp_path):
    return os.fsencode(tmp_path / "run")


def watch(run=None, **more):
    return ClockWatch(5 * MINUTE, run, **more)


@pytest.mark.parametrize("jump", [YEAR, 2 * HOUR, -2 * HOUR, -YEAR])
def test_a_jump_is_suspect_for_an_interval_and_not_for_one_pass(jump):
    clocks = watch()
    assert not clocks.look(NOW, BOOT).suspect
    for minutes, suspect in ((1, True), (2, True), (5, True), (6, False), (7, False)):
        passed = minutes * MINUTE
        assert clocks.look(NOW + jump + passed, BOOT + passed).suspect is suspect, minutes


@pytest.mark.parametrize("step", [59 * MINUTE, -59 * MINUTE, SECOND, -SECOND])
def test_a_small_step_is_not_suspect(step):
    clocks = watch()
    clocks.look(NOW, BOOT)
    assert not clocks.look(NOW + step, BOOT).suspect


def test_a_suspended_night_is_no_jump():
    clocks = watch()
    clocks.look(NOW, BOOT)
    assert not clocks.look(NOW + 9 * HOUR, BOOT + 9 * HOUR).suspect


def test_a_slow_correction_never_adds_up_to_a_jump():
    clocks = watch()
    for minutes in range(0, 600, 5):  # ten hours in which the clock gains six, five minutes at a time
        drift = minutes * 36 * SECOND
        assert not clocks.look(NOW + minutes * MINUTE + drift, BOOT + minutes * MINUTE).suspect


@pytest.mark.parametrize("jump", [YEAR, -YEAR])
def test_meanwhile_the_earlier_and_the_later_time_are_known(jump):
    clocks = watch()
    clocks.look(NOW, BOOT)
    time = clocks.look(NOW + jump + MINUTE, BOOT + MINUTE)
    assert time.wall_ns == NOW + jump + MINUTE
    assert (time.sure_ns, time.late_ns) == tuple(sorted((NOW + MINUTE, NOW + jump + MINUTE)))
    assert ("ahead" if jump > 0 else "back") in time.sentence
    later = clocks.look(NOW + jump + 6 * MINUTE, BOOT + 6 * MINUTE)
    assert later.sure_ns == later.late_ns == later.wall_ns


def test_of_two_jumps_in_a_row_the_time_before_the_first_counts():
    clocks = watch()
    clocks.look(NOW, BOOT)
    clocks.look(NOW + YEAR, BOOT)
    time = clocks.look(NOW + 2 * YEAR + MINUTE, BOOT + MINUTE)
    assert (time.sure_ns, time.suspect) == (NOW + MINUTE, True)


def test_a_clock_that_was_put_right_waits_all_the_same():
    clocks = watch()
    clocks.look(NOW, BOOT)
    clocks.look(NOW + YEAR, BOOT)
    time = clocks.look(NOW + MINUTE, BOOT + MINUTE)
    assert (time.sure_ns, time.late_ns, time.suspect) == (NOW + MINUTE, NOW + MINUTE, True)


@pytest.mark.parametrize("jump", [YEAR, -YEAR])
def test_a_jump_between_two_processes_is_noticed_by_the_second(run, jump):
    assert not watch(run).look(NOW, BOOT).suspect
    assert watch(run).look(NOW + jump + HOUR, BOOT + HOUR).suspect
    assert watch(run).look(NOW + jump + HOUR + MINUTE, BOOT + HOUR + MINUTE).suspect
    assert not watch(run).look(NOW + jump + 2 * HOUR, BOOT + 2 * HOUR).suspect


def test_a_look_that_shall_leave_no_trace_leaves_none(run):
    watch(run).look(NOW, BOOT)
    before = (read_mark(run), sorted(os.listdir(run)))
    assert watch(run).look(NOW + YEAR, BOOT, keep=False).suspect
    assert (read_mark(run), sorted(os.listdir(run))) == before


def test_the_mark_is_not_written_in_every_pass(run):
    clocks = watch(run)
    clocks.look(NOW, BOOT)
    os.unlink(os.path.join(run, b"clock.json"))
    for minutes in range(1, 60):
        clocks.look(NOW + minutes * (MINUTE + SECOND // 2), BOOT + minutes * MINUTE)
    assert os.listdir(run) == []


def test_what_was_kept_in_another_boot_says_nothing(run):
    write_mark(run, ClockMark(NOW - BOOT))
    path = os.path.join(run, b"clock.json")
    with open(path, "rb") as file:
        text = file.read()
    assert boot_id().encode() in text
    with open(path, "wb") as file:
        file.write(text.replace(boot_id().encode(), b"00000000-0000-0000-0000-000000000000"))
    assert read_mark(run) is None
    assert not watch(run).look(NOW + YEAR, SECOND).suspect


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b"7", b'{"boot_id": 1}', b"\xff\x00"])
def test_a_damaged_mark_is_no_mark(run, junk):
    os.makedirs(run)
    with open(os.path.join(run, b"clock.json"), "wb") as file:
        file.write(junk)
    assert not watch(run).look(NOW, BOOT).suspect
    assert watch(run).look(NOW + YEAR, BOOT).suspect


def test_a_mark_whose_numbers_are_none_is_no_mark(run):
    write_mark(run, ClockMark("soon", True))
    assert read_mark(run) is None


def test_where_no_mark_can_be_kept_one_process_notices_all_the_same():
    clocks = watch(b"/proc/none")
    assert not clocks.look(NOW, BOOT).suspect
    assert clocks.look(NOW + YEAR, BOOT).suspect


def test_a_clock_behind_the_last_pass_on_record_is_suspect_after_a_boot(run):
    """A machine without a battery for its clock starts in 1970, or at the day its system was made."""
    clocks = watch(run, known_ns=NOW)
    time = clocks.look(NOW - YEAR, SECOND)
    assert (time.suspect, time.sure_ns) == (True, NOW - YEAR)
    assert "behind" in time.sentence
    # The time server comes along: another jump, and another interval.
    assert clocks.look(NOW + HOUR, 2 * MINUTE).suspect
    assert not clocks.look(NOW + HOUR + 5 * MINUTE, 7 * MINUTE).suspect


def test_a_long_time_switched_off_is_no_jump(run):
    assert not watch(run, known_ns=NOW).look(NOW + YEAR, SECOND).suspect


def test_the_machine_itself_does_not_jump(run):
    clock = SystemClock()
    clocks = watch(run)
    for _ in range(3):
        assert not clocks.look(clock.wall_ns(), clock.monotonic_ns()).suspect
