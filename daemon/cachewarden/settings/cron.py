"""The shape of `schedule`: five fields of cron text, checked before anything runs by it."""

import re
from typing import NamedTuple


class _Field(NamedTuple):
    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()  # may stand for numbers; the first is the lowest


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field(
        "month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
    ),
    _Field("day of the week", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
_LONGEST = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ELEMENT = re.compile(r"(?:\*|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([0-9]{1,2}))?")


def parse_cron(value: object) -> str:
    """The text with single spaces, in lower case. Raises ValueError with a sentence.

    As crontab(5) has it: `*`, numbers, names, ranges, lists and steps; 0 and 7 are Sunday, and days
    of the week may go over its end, as in `fri-mon`.
    """
    parts = value.lower().split() if isinstance(value, str) else []
    if len(parts) != len(_FIELDS):
        raise ValueError("must be cron text of five fields: minute hour day month weekday, as in 30 3 * * *")
    chosen = [
        {number for element in part.split(",") for number in _numbers(element, field)}
        for part, field in zip(parts, _FIELDS, strict=True)
    ]
    _, _, days, months, _ = chosen
    if parts[4] == "*" and min(days) > max(_LONGEST[month] for month in months):
        raise ValueError("names a day that never comes")
    return " ".join(parts)


def _numbers(element: str, field: _Field) -> range | set[int]:
    """The numbers that one element of a list stands for."""
    match = _ELEMENT.fullmatch(element)
    step = int(match[3] or 1) if match else 0
    if match and 0 < step <= field.highest - field.lowest:
        first = _number(match[1], field.lowest, field)
        last = _number(match[2], first if match[1] and not match[3] else field.highest, field)
        if field.lowest <= first <= last <= field.highest:
            return range(first, last + 1, step)
        if field.lowest <= last < first <= field.highest and field.name == "day of the week":
            return {*range(first, field.highest + 1), *range(last + 1)}
    raise ValueError(f"{element!r} is no {field.name} ({field.lowest} to {field.highest})")


def _number(text: str | None, default: int, field: _Field) -> int:
    """The number that digits or a name stand for; -1 for a name that there is not."""
    if text is None:
        return default
    if text.isdigit():
        return int(text)
    return field.names.index(text) + field.lowest if text in field.names else -1
