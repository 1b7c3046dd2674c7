"""Fixed times, quiet hours and intervals on the days on which a zone changes its clocks.

Berlin and New York change by an hour, Lord Howe by half of one, Havana at midnight; Apia once left out a day.
"""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from cachewarden.clock import SetClock
from cachewarden.schedule import Cron, Schedule
from cachewarden.units import parse_clock_range

SECOND = 10**9
MINUTE = 60 * SECOND

# Zone, first day of two around the change, the hour that is skipped or shown twice.
SPRING = [
    ("Europe/Berlin", "2026-03-28", "02:30"),
    ("America/New_York", "2026-03-07", "02:30"),
    ("Australia/Lord_Howe", "2026-10-03", "02:15"),
    ("America/Havana", "2026-03-07", "00:30"),
]
AUTUMN = [
    ("Europe/Berlin", "2026-10-24", "02:30"),
    ("America/New_York", "2026-10-31", "01:30"),
    ("Australia/Lord_Howe", "2026-04-04", "01:45"),
    ("America/Havana", "2026-10-31", "00:30"),
]


def scheduled(zone, start, line=None, quiet=()):
    """A schedule that stands at the local time `start`, and its clock."""
    clock = SetClock(int(datetime.fromisoformat(start).replace(tzinfo=zone).timestamp()) * SECOND)
    schedule = Schedule(lambda: None, clock, zone)
    schedule.configure(None if line else MINUTE, line, [parse_clock_range(each) for each in quiet])
    schedule.turn()
    return schedule, clock


def due(schedule, clock, hours, step=20):
    """Moments (UTC) at which something was due."""
    found = []
    for _ in range(0, hours * 3600, step):
        clock.advance(step * SECOND)
        if schedule.turn():
            found.append(datetime.fromtimestamp(clock.wall_ns() // SECOND, UTC))
    return found


@pytest.mark.parametrize(("name", "day", "at"), [*SPRING, *AUTUMN])
def test_a_day_of_change_has_a_pass_for_each_minute_of_real_time(name, day, at):
    schedule, clock = scheduled(ZoneInfo(name), f"{day} 12:00")
    assert len(due(schedule, clock, 24)) == 1440


@pytest.mark.parametrize(("name", "day", "at"), [*SPRING, *AUTUMN])
def test_a_fixed_time_is_due_once_on_each_day_also_when_it_is_skipped_or_shown_twice(name, day, at):
    zone = ZoneInfo(name)
    hour, minute = at.split(":")
    schedule, clock = scheduled(zone, f"{day} 12:00", f"{minute} {hour} * * *")
    found = [each.astimezone(zone) for each in due(schedule, clock, 54)]
    first = datetime.fromisoformat(day).date()
    assert [each.date() for each in found] == [first + timedelta(days=1), first + timedelta(days=2)]
    assert found[1].strftime("%H:%M") == at


@pytest.mark.parametrize(("name", "day", "at"), SPRING)
def test_a_time_that_is_skipped_is_due_and_announced_right_after_the_gap(name, day, at):
    zone = ZoneInfo(name)
    hour, minute = at.split(":")
    schedule, clock = scheduled(zone, f"{day} 12:00", f"{minute} {hour} * * *")
    announced = schedule.next_due_ns()
    (moment,) = due(schedule, clock, 24)
    assert announced == int(moment.timestamp()) * SECOND
    before = datetime.fromtimestamp(announced // SECOND - 1, zone).utcoffset()
    assert before != datetime.fromtimestamp(announced // SECOND, zone).utcoffset()


@pytest.mark.parametrize(("name", "day", "at"), AUTUMN)
def test_a_time_that_is_shown_twice_is_due_and_announced_at_the_first(name, day, at):
    zone = ZoneInfo(name)
    hour, minute = at.split(":")
    schedule, clock = scheduled(zone, f"{day} 12:00", f"{minute} {hour} * * *")
    announced = schedule.next_due_ns()
    (moment,) = due(schedule, clock, 24)
    assert announced == int(moment.timestamp()) * SECOND
    assert moment.astimezone(zone).fold == 0


@pytest.mark.parametrize(("name", "day", "at"), [*SPRING, *AUTUMN])
def test_an_hourly_line_is_never_late_by_more_than_the_hour_that_is_shown_twice(name, day, at):
    schedule, clock = scheduled(ZoneInfo(name), f"{day} 12:00", "5 * * * *")
    found = due(schedule, clock, 24)
    assert 23 <= len(found) <= 25
    assert max(later - earlier for earlier, later in pairwise(found)) <= timedelta(hours=2)


def test_a_day_that_never_was_is_made_up_for_by_one_pass_and_not_by_many():
    """Samoa went from the 29th of December 2011 straight to the 31st."""
    zone = ZoneInfo("Pacific/Apia")
    schedule, clock = scheduled(zone, "2011-12-29 12:00", "0 3 * * *")
    found = [each.astimezone(zone).strftime("%d %H:%M") for each in due(schedule, clock, 48)]
    assert found == ["31 00:00", "31 03:00", "01 03:00"]


@pytest.mark.parametrize(
    ("name", "day", "ranges", "hours"),
    [
        ("Europe/Berlin", "2026-03-28", ["02:00-03:00"], 0),  # never shown that night
        ("Europe/Berlin", "2026-10-24", ["02:00-03:00"], 2),  # shown twice
        ("Europe/Berlin", "2026-03-28", ["22:00-06:00"], 7),
        ("Europe/Berlin", "2026-10-24", ["22:00-06:00"], 9),
        ("America/New_York", "2026-03-07", ["22:00-06:00"], 7),
        ("America/New_York", "2026-10-31", ["22:00-06:00"], 9),
        ("Australia/Lord_Howe", "2026-10-03", ["22:00-06:00"], 7.5),
        ("Australia/Lord_Howe", "2026-04-04", ["22:00-06:00"], 8.5),
        ("America/Havana", "2026-03-07", ["22:00-06:00"], 7),
        ("Europe/Berlin", "2026-03-28", ["00:00-24:00"], 24),
    ],
)
def test_quiet_hours_are_those_that_the_wall_shows(name, day, ranges, hours):
    schedule, clock = scheduled(ZoneInfo(name), f"{day} 12:00", quiet=ranges)
    quiet = 0
    for _ in range(24 * 60):
        quiet += schedule.quiet(clock.wall_ns())
        clock.advance(MINUTE)
    assert quiet == hours * 60


@pytest.mark.parametrize("step", [-7200, -120, -30, 120, 7200, 365 * 86400])
def test_a_fixed_time_comes_after_any_step_of_the_clock(step):
    """Once for what a step ahead left out, and not twice for what a small step back shows again."""
    zone = ZoneInfo("Europe/Berlin")
    schedule, clock = scheduled(zone, "2026-06-01 00:00", "0 * * * *")
    assert len(due(schedule, clock, 2)) == 2
    clock.advance(600 * SECOND)
    clock.step(step * SECOND)
    found = due(schedule, clock, 3)
    assert 3 <= len(found) <= 4
    assert {later - earlier for earlier, later in pairwise(found[1:])} == {timedelta(hours=1)}


@pytest.mark.parametrize("step", [-3, -59])
def test_a_small_step_back_just_after_a_fixed_time_does_not_repeat_it(step):
    schedule, clock = scheduled(ZoneInfo("Europe/Berlin"), "2026-06-01 00:00", "0 1 * * *")
    assert len(due(schedule, clock, 1)) == 1
    clock.step(step * SECOND)
    assert due(schedule, clock, 1) == []


def test_each_time_of_a_line_is_shown_when_it_is_said_to_be():
    zone = ZoneInfo("Europe/Berlin")
    cron, shown = Cron("15,45 * * * *", zone), datetime(2026, 3, 28, 22, tzinfo=UTC)
    for _ in range(20):
        shown = cron.next_after(shown)
        wall_ns = cron.wall_ns(shown)
        assert cron.calendar(wall_ns) >= shown > cron.calendar(wall_ns - SECOND)
