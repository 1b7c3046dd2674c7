"""Cron lines mean what crontab(5) says they mean."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from cachewarden.schedule import Cron

BRUSSELS = ZoneInfo("Europe/Brussels")


def next_times(line: str, start: str, count: int) -> list[str]:
    cron, shown, times = Cron(line, BRUSSELS), datetime.fromisoformat(start).replace(tzinfo=UTC), []
    for _ in range(count):
        shown = cron.next_after(shown)
        times.append(shown.strftime("%a %d %H:%M"))
    return times


@pytest.mark.parametrize("field", ["0", "7", "sun", "SUN", "7-7", "0/7"])
def test_sunday_is_0_and_7_as_in_crontab(field):
    assert next_times(f"0 3 * * {field}", "2026-01-01", 2) == ["Sun 04 03:00", "Sun 11 03:00"]


@pytest.mark.parametrize("field", ["1-5", "mon-fri", "1,2,3,4,5", "*/1", "5-7", "sat-mon"])
def test_ranges_of_days_mean_what_crontab_means(field):
    days = {time[:3].lower() for time in next_times(f"0 3 * * {field}", "2026-01-01", 14)}
    meant = {
        "*/1": {"sun", "mon", "tue", "wed", "thu", "fri", "sat"},
        "5-7": {"fri", "sat", "sun"},
        "sat-mon": {"sat", "sun", "mon"},
    }
    assert days == meant.get(field, {"mon", "tue", "wed", "thu", "fri"})


def test_day_of_month_or_day_of_week_is_enough_when_both_are_given():
    assert next_times("0 3 13 * 5", "2026-01-01", 4) == [
        "Fri 02 03:00",
        "Fri 09 03:00",
        "Tue 13 03:00",
        "Fri 16 03:00",
    ]
