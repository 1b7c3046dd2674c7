"""The shape of `schedule`: five fields of cron text, checked before anything runs by it."""

import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# Name, lowest, highest, and the names that may stand for numbers (the first is the lowest).
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_ELEMENT = re.compile(r"(?:\*|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([0-9]{1,2}))?")


def parse_cron(value: object) -> str:
    """The text with single spaces, in lower case. Raises ValueError with a sentence.

    As crontab(5) has it: `*`, numbers, names, ranges, lists and steps; 0 and 7 are Sunday.
    """
    if not isinstance(value, str) or len(value.split()) != len(_FIELDS):
        raise ValueError(
            "must be cron text of five fields: minute hour day month weekday, such as 30 3 * * *"
        )
    parts = value.lower().split()
    for part, (name, lowest, highest, names) in zip(parts, _FIELDS, strict=True):
        for element in part.split(","):
            if not _fits(element, lowest, highest, names):
                raise ValueError(f"{element!r} is no {name} ({lowest} to {highest})")
    return " ".join(parts)


def _fits(element: str, lowest: int, highest: int, names: tuple[str, ...]) -> bool:
    match = _ELEMENT.fullmatch(element)
    if match is None or match[3] == "0":
        return False
    ends = [_number(each, lowest, names) for each in match.groups()[:2] if each is not None]
    return all(lowest <= end <= highest for end in ends) and ends == sorted(ends)


def _number(text: str, lowest: int, names: tuple[str, ...]) -> int:
    """The number that a digit or a name stands for; -1 for a name that there is not."""
    if text.isdigit():
        return int(text)
    return names.index(text) + lowest if text in names else -1
