"""Cron lines as crontab(5) has them, by APScheduler's trigger, with three of its surprises undone.

- Its days of the week count from Monday, crontab's from Sunday: numbers become names here.
- It wants day of the month *and* day of the week to match; crontab(5) wants either, when both are
  given.
- In the hour that the clock shows twice, its next time may lie before the last one (3.11.3), which
  would fire without end. So it reckons in bare calendar time here, where no hour is special.
"""

from datetime import UTC, datetime, timedelta, tzinfo

from apscheduler.triggers.cron import CronTrigger

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class Cron:
    """Five fields: minute, hour, day of the month, month, day of the week; local time of `zone`.

    A time that the clock skips is due right after the gap; one that it shows twice is due once.
    Raises ValueError with a sentence.
    """

    def __init__(self, text: str, zone: tzinfo) -> None:
        fields = text.split()
        if len(fields) != 5:
            raise ValueError(f"a cron line has five fields, this one has {len(fields)}: {text!r}")
        minute, hour, day, month, weekday = fields
        weekday = _weekdays(weekday)
        either = [(day, weekday)] if "*" in (day, weekday) else [(day, "*"), ("*", weekday)]
        self._zone = zone
        self._triggers = [
            CronTrigger(minute=minute, hour=hour, day=d, month=month, day_of_week=w, timezone=UTC)
            for d, w in either
        ]
        if self.next_after(datetime(2000, 1, 1, tzinfo=UTC)) is None:
            raise ValueError(f"the cron line {text!r} names a day that never comes")

    def calendar(self, wall_ns: int) -> datetime:
        """What calendar and clock on the wall show, as if there were no zones."""
        return datetime.fromtimestamp(wall_ns // 10**9, self._zone).replace(tzinfo=UTC, fold=0)

    def next_after(self, shown: datetime) -> datetime | None:
        """The first time of the line after `shown`, both in calendar time; None after the year 9999."""
        start = shown + timedelta(microseconds=1)
        times = [trigger.get_next_fire_time(None, start) for trigger in self._triggers]
        return min((time for time in times if time is not None), default=None)

    def wall_ns(self, shown: datetime) -> int:
        """When the wall shows this or, where it skips it, something later; nanoseconds since the epoch.

        Of a time that it shows twice, the first one.
        """
        here = shown.replace(tzinfo=self._zone)
        late = int(here.timestamp())
        early = min(late, int(here.replace(fold=1).timestamp()))
        if self.calendar(late * 10**9) == shown:
            return late * 10**9
        # Skipped: PEP 495 reckons it from either side of the gap, which lies between the two.
        while early < late:
            middle = (early + late) // 2
            if self.calendar(middle * 10**9) >= shown:
                late = middle
            else:
                early = middle + 1
        return late * 10**9


def _weekdays(field: str) -> str:
    """The field with names for numbers, `*` when it does not restrict."""
    if field == "*":
        return field
    chosen = {day for part in field.lower().split(",") for day in _weekday_range(part)}
    return ",".join(_DAYS[day] for day in sorted(chosen))


def _weekday_range(part: str) -> list[int]:
    span, slash, step = part.partition("/")
    first, dash, last = span.partition("-")
    start, end = (0, 6) if span == "*" else (_weekday(first), _weekday(last if dash else first))
    if slash and not dash and span != "*":
        end = 6
    if dash and end < start:  # "fri-sun", and "5-7": Sunday is also 7
        end += 7
    if slash and not (step.isascii() and step.isdecimal() and int(step) > 0):
        raise ValueError(f"{part!r} is not a day of the week")
    return [day % 7 for day in range(start, end + 1, int(step) if slash else 1)]


def _weekday(text: str) -> int:
    if text in _DAYS:
        return _DAYS.index(text)
    if text.isascii() and text.isdecimal() and int(text) <= 7:
        return int(text) % 7
    raise ValueError(f"{text!r} is not a day of the week; they are 0 to 7, or sun to sat")
