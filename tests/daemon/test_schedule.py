"""When reconciles are due: clocks that jump, summer time, passes that take too long."""

import threading
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from cachewarden.clock import SetClock, SystemClock
from cachewarden.schedule import Schedule
from cachewarden.units import parse_clock_range

SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
BRUSSELS = ZoneInfo("Europe/Brussels")


def at(text: str, zone=BRUSSELS, fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()) * 10**9


def passes(schedule: Schedule, clock: SetClock, seconds: int, step: int = 1) -> int:
    """How many times something is due while time goes on."""
    count = 0
    for _ in range(0, seconds, step):
        clock.advance(step * SECOND)
        count += schedule.turn()
    return count


def every_minute(clock: SetClock) -> Schedule:
    schedule = Schedule(lambda: None, clock, BRUSSELS)
    schedule.configure(MINUTE)
    assert not schedule.turn(), "what is there at the start needs no reconcile to be found"
    return schedule


def test_a_reconcile_is_due_once_per_interval():
    clock = SetClock()
    schedule = every_minute(clock)
    assert passes(schedule, clock, 59) == 0
    assert passes(schedule, clock, 1) == 1
    assert passes(schedule, clock, 600) == 10


@pytest.mark.parametrize("hours", [-2, 2, -24 * 365, 24 * 365])
def test_a_step_of_the_wall_clock_neither_delays_nor_multiplies(hours):
    clock = SetClock()
    schedule = every_minute(clock)
    passes(schedule, clock, 30)
    clock.step(hours * HOUR)
    assert passes(schedule, clock, 29) == 0
    assert passes(schedule, clock, 1) == 1
    assert passes(schedule, clock, 600) == 10


def test_a_suspended_night_is_made_up_for_once():
    clock = SetClock()
    schedule = every_minute(clock)
    clock.advance(2 * HOUR)
    assert schedule.turn()
    assert passes(schedule, clock, 59) == 0
    assert passes(schedule, clock, 1) == 1


@pytest.mark.parametrize("day", ["2026-03-29 00:00", "2026-10-25 00:00"])
@pytest.mark.parametrize("late_by", [0, 0.7])
def test_a_day_of_a_time_change_has_as_many_passes_as_any_24_hours(day, late_by):
    clock = SetClock(wall_ns=at(day) + int(late_by * SECOND))
    schedule = every_minute(clock)
    clock.advance(int(late_by * SECOND))
    assert abs(passes(schedule, clock, 86_400) - 1440) <= 1


def test_ticks_that_come_late_do_not_add_up():
    clock = SetClock()
    schedule = every_minute(clock)
    assert abs(passes(schedule, clock, 86_400, step=7) - 1440) <= 1


def test_after_a_pass_that_took_too_long_exactly_one_follows():
    clock = SetClock()
    durations = [150 * SECOND, 0, 0]
    schedule = Schedule(lambda: clock.advance(durations.pop(0)), clock, BRUSSELS)
    schedule.configure(MINUTE)
    clock.advance(MINUTE)
    assert schedule.turn()
    assert schedule.turn(), "right after it"
    assert not schedule.turn()
    assert passes(schedule, clock, 59) == 0
    assert passes(schedule, clock, 1) == 1


def test_a_reload_keeps_the_count_and_takes_the_new_interval():
    clock = SetClock()
    schedule = every_minute(clock)
    clock.advance(50 * SECOND)
    schedule.configure(10 * MINUTE)
    assert passes(schedule, clock, 549) == 0
    assert passes(schedule, clock, 1) == 1
    schedule.configure(5 * SECOND)
    assert passes(schedule, clock, 10) == 2


def test_what_is_due_next_is_told_in_wall_time():
    clock = SetClock(wall_ns=at("2026-01-01 11:58"))
    schedule = Schedule(lambda: None, clock, BRUSSELS)
    assert schedule.next_due_ns() is None
    schedule.configure(MINUTE)
    assert schedule.next_due_ns() == clock.wall_ns() + MINUTE
    clock.advance(20 * SECOND)
    assert schedule.next_due_ns() == clock.wall_ns() + 40 * SECOND
    schedule.configure(HOUR, "0 12 * * *")
    assert schedule.next_due_ns() == at("2026-01-01 12:00")


def cron_times(line: str, start: str, hours: int, fold: int = 0) -> list[str]:
    """Real moments (UTC) at which a cron line is due, looked at every ten seconds."""
    clock = SetClock(wall_ns=at(start, fold=fold))
    schedule = Schedule(lambda: None, clock, BRUSSELS)
    schedule.configure(None, line)
    times = []
    for _ in range(hours * 360):
        clock.advance(10 * SECOND)
        if schedule.turn():
            times.append(datetime.fromtimestamp(clock.wall_ns() // SECOND, UTC).strftime("%d %H:%M"))
    return times


def test_a_fixed_time_is_due_once_a_day():
    assert cron_times("30 2 * * *", "2026-01-01 00:00", 48) == ["01 01:30", "02 01:30"]


def test_a_time_that_the_clock_skips_is_due_right_after_the_gap():
    assert cron_times("30 2 * * *", "2026-03-29 00:00", 30) == ["29 01:00", "30 00:30"]


def test_a_time_that_the_clock_shows_twice_is_due_once():
    assert cron_times("30 2 * * *", "2026-10-25 00:00", 36) == ["25 00:30", "26 01:30"]
    assert len(cron_times("*/30 * * * *", "2026-10-25 00:00", 25)) == 48


def test_a_cron_line_is_due_once_after_a_long_absence_and_survives_a_clock_that_was_ahead():
    clock = SetClock(wall_ns=at("2026-01-01 00:00"))
    schedule = Schedule(lambda: None, clock, BRUSSELS)
    schedule.configure(None, "0 * * * *")
    clock.step(24 * 365 * HOUR)
    assert passes(schedule, clock, 60) == 1
    clock.step(-24 * 365 * HOUR)
    assert passes(schedule, clock, 3600, step=10) == 1


@pytest.mark.parametrize(
    "line",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "x * * * *",
        "* * * * 8",
        "* * * * noday",
        "* * * * 1/0",
        "* * * * \u0661",
        "0 0 31 2 *",
    ],
)
def test_a_bad_cron_line_is_refused_and_changes_nothing(line):
    clock = SetClock()
    schedule = every_minute(clock)
    with pytest.raises(ValueError, match=r"\w"):
        schedule.configure(HOUR, line)
    assert passes(schedule, clock, 60) == 1


@pytest.mark.parametrize(
    ("ranges", "moment", "quiet"),
    [
        (["08:00-18:00"], "2026-01-01 08:00", True),
        (["08:00-18:00"], "2026-01-01 17:59", True),
        (["08:00-18:00"], "2026-01-01 18:00", False),
        (["08:00-18:00"], "2026-01-01 07:59", False),
        (["22:00-06:00"], "2026-01-01 23:30", True),
        (["22:00-06:00"], "2026-01-01 05:59", True),
        (["22:00-06:00"], "2026-01-01 12:00", False),
        (["22:00-06:00", "12:00-13:00"], "2026-01-01 12:00", True),
        (["00:00-24:00"], "2026-07-01 23:59", True),
        (["08:00-18:00"], "2026-07-01 08:00", True),  # summer time: 06:00 UTC
        ([], "2026-01-01 12:00", False),
    ],
)
def test_quiet_hours_are_local_time(ranges, moment, quiet):
    schedule = Schedule(lambda: None, SetClock(), BRUSSELS)
    schedule.configure(HOUR, quiet_hours=[parse_clock_range(each) for each in ranges])
    assert schedule.quiet(at(moment)) is quiet


@pytest.fixture
def running():
    schedules: list[Schedule] = []

    def run(on_due, interval_ns: int) -> Schedule:
        schedule = Schedule(on_due, SystemClock())
        schedule.configure(interval_ns)
        schedule.start()
        schedules.append(schedule)
        return schedule

    yield run
    for schedule in schedules:
        schedule.stop()


def wait_for(condition, seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def test_it_ticks_by_itself_and_stops(running):
    calls: list[float] = []
    schedule = running(lambda: calls.append(time.monotonic()), 1 * SECOND)
    wait_for(lambda: len(calls) >= 3)
    schedule.stop()
    count = len(calls)
    time.sleep(1.5)
    assert len(calls) == count


def test_a_tick_left_behind_by_a_clock_that_was_set_back_comes_at_once(running):
    calls: list[float] = []
    schedule = running(lambda: calls.append(time.monotonic()), 1 * SECOND)
    wait_for(lambda: calls)
    # What a step of the wall clock by two hours leaves behind; this machine's clock stays alone.
    ahead = datetime.now(UTC) + timedelta(hours=2)
    schedule._scheduler.modify_job("tick", next_run_time=ahead)
    count = len(calls)
    wait_for(lambda: len(calls) > count)


def test_reconciles_never_overlap_and_stopping_does_not_wait_for_one(running):
    begun, release = [], threading.Event()

    def on_due():
        begun.append(1)
        release.wait(20)

    schedule = running(on_due, SECOND)
    wait_for(lambda: begun)
    time.sleep(2.5)
    assert len(begun) == 1
    start = time.monotonic()
    schedule.stop()
    assert time.monotonic() - start < 5
    release.set()


def test_an_error_in_one_reconcile_does_not_end_the_schedule(running):
    calls: list[int] = []

    def on_due():
        calls.append(1)
        raise RuntimeError("a bug in a pass")

    running(on_due, SECOND)
    wait_for(lambda: len(calls) >= 2)


def test_a_schedule_that_was_never_started_can_be_stopped():
    Schedule(lambda: None, SetClock(), BRUSSELS).stop()
