"""Sizes, durations, shares and times of day as people type them, and as they are shown again.

Everything that could mean two things is an error with a sentence, because a limit that nobody meant
deletes data: exponents, signs, leading zeros, digits of other scripts (Python's `int` takes those),
a duration without a unit. `10G` could be read both ways; it is GiB, as coreutils and systemd have it.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from cachewarden_policies.policy import Amount

# Signed 64 bits: what the ledger (SQLite) and the kernel's own counters can hold.
LARGEST = 2**63 - 1

# `[0-9]` and not `\d`, which also takes the digits of other scripts.
_NUMBER = r"(0|[1-9][0-9]*)(\.[0-9]+)?"
_SIZE = re.compile(rf"{_NUMBER} ?([A-Za-z]*)")
_PERCENT = re.compile(rf"{_NUMBER} ?%")
_DURATION_PART = re.compile(rf" ?{_NUMBER} ?([A-Za-z]+)")
_COUNT = re.compile(r"0|[1-9][0-9]*")
_CLOCK_RANGE = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9]) ?- ?(?:([01][0-9]|2[0-3]):([0-5][0-9])|24:00)")

_PREFIXES = "KMGTPE"
SIZE_UNITS = {
    "": 1,
    "B": 1,
    "kB": 1000,
    "k": 1024,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(_PREFIXES, 1)},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate(_PREFIXES, 1)},
    **{prefix: 1024**power for power, prefix in enumerate(_PREFIXES, 1)},
}
DURATION_UNITS = {
    "w": 7 * 86400 * 10**9,
    "d": 86400 * 10**9,
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
}


@dataclass(frozen=True, slots=True)
class ClockRange:
    """A part of every day in local time: minutes since midnight, `start` in it and `end` not.

    With `end` below `start` it goes over midnight.
    """

    start: int
    end: int

    def contains(self, minute: int) -> bool:
        """Whether this minute of the day (0 to 1439) is in the range."""
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


def parse_size(value: object) -> int:
    """Bytes, from text such as `10GiB`, `1.5 TiB`, `10GB` (10^10), `10G` (GiB) or a bare integer.

    Fractions of a byte are dropped. Raises ValueError with a sentence.
    """
    if type(value) is int:
        return _within(value, "a size")
    match = _SIZE.fullmatch(_text(value, "a size, such as 10GiB"))
    if match is None:
        raise ValueError(f"not a size; write it like 10GiB, 1.5TiB, 10GB or 1073741824{_why(str(value))}")
    whole, fraction, unit = match.groups()
    if unit not in SIZE_UNITS:
        raise ValueError(f"{unit} is not a unit of size{_similar(unit, SIZE_UNITS)}")
    if fraction and SIZE_UNITS[unit] == 1:
        raise ValueError("there are no fractions of a byte; a unit such as GiB is missing")
    return _within(int(Fraction(whole + (fraction or "")) * SIZE_UNITS[unit]), "a size")


def parse_duration(value: object) -> int:
    """Nanoseconds, from text such as `50ms`, `90s`, `15m`, `12h`, `30d`, `2w` or a sum, `1d12h`.

    Only 0 needs no unit. The parts of a sum stand from the largest unit to the smallest, each once.
    Raises ValueError with a sentence.
    """
    text = str(value) if type(value) is int else _text(value, "a duration, such as 12h")
    if _COUNT.fullmatch(text):
        if text == "0":
            return 0
        raise ValueError("a duration needs a unit: ms, s, m, h, d or w")
    if why := _why(text):
        raise ValueError(f"not a duration; write it like 90s, 15m, 12h, 30d or 1d12h{why}")
    total, end, last = Fraction(0), 0, LARGEST
    while match := _DURATION_PART.match(text, end):
        whole, fraction, unit = match.groups()
        if unit not in DURATION_UNITS:
            raise ValueError(f"{unit} is not a unit of time{_similar(unit, DURATION_UNITS)}")
        if DURATION_UNITS[unit] >= last:
            raise ValueError("the parts of a duration go from the largest unit to the smallest, each once")
        last = DURATION_UNITS[unit]
        total += Fraction(whole + (fraction or "")) * last
        end = match.end()
    if end != len(text) or end == 0 or text[0] == " ":
        raise ValueError("not a duration; write it like 90s, 15m, 12h, 30d or 1d12h")
    return _within(int(total), "a duration")


def parse_share(value: object) -> Fraction:
    """A share from 0 to 1, from a percentage such as `50%`. Raises ValueError with a sentence."""
    text = _text(value, "a percentage, such as 50%")
    match = _PERCENT.fullmatch(text)
    if match is None:
        raise ValueError(f"not a percentage; write it like 50%{_why(text)}")
    share = Fraction(match[1] + (match[2] or "")) / 100
    if share > 1:
        raise ValueError("a percentage goes from 0% to 100%")
    return share


def parse_amount(value: object) -> Amount:
    """A percentage or a size. Raises ValueError with a sentence."""
    if isinstance(value, str) and value.rstrip().endswith("%"):
        return Amount(share=parse_share(value))
    return Amount(absolute=parse_size(value))


def parse_count(value: object) -> int:
    """A whole number of files or entries; as text, digits only. Raises ValueError with a sentence."""
    if type(value) is int:
        return _within(value, "a number")
    text = _text(value, "a whole number")
    if _COUNT.fullmatch(text) is None:
        raise ValueError(f"not a whole number; write it like 500000{_why(text)}")
    return _within(int(text), "a number")


def parse_count_amount(value: object) -> Amount:
    """A percentage or a whole number. Raises ValueError with a sentence."""
    if isinstance(value, str) and value.rstrip().endswith("%"):
        return Amount(share=parse_share(value))
    return Amount(absolute=parse_count(value))


def parse_clock_range(value: object) -> ClockRange:
    """A part of the day, from `08:00-18:00`; `22:00-06:00` goes over midnight, `24:00` may end it.

    Raises ValueError with a sentence.
    """
    match = _CLOCK_RANGE.fullmatch(_text(value, "a part of the day, such as 08:00-18:00"))
    if match is None:
        raise ValueError("not a part of the day; write it like 08:00-18:00")
    start = int(match[1]) * 60 + int(match[2])
    end = 1440 if match[3] is None else int(match[3]) * 60 + int(match[4])
    if start == end:
        raise ValueError("begins and ends at the same time; the whole day is 00:00-24:00")
    return ClockRange(start, end)


def format_size(size: int) -> str:
    """Bytes for people: `512 B`, `1.5 GiB`; at most one decimal, rounded. Negative keeps its sign."""
    if size < 0:
        return f"-{format_size(-size)}"
    unit, scaled = "B", Fraction(size)
    for prefix in _PREFIXES:
        # Rounded first: 1023.96 KiB would otherwise be shown as 1024 KiB.
        if round(scaled, 0 if unit == "B" else 1) < 1024:
            break
        unit, scaled = f"{prefix}iB", scaled / 1024
    return f"{float(scaled):.1f}".removesuffix(".0") + f" {unit}"


def format_duration(duration: int) -> str:
    """Nanoseconds for people: the two largest units, cut off, `3 d 4 h`; `parse_duration` reads it."""
    if duration < 0:
        return f"-{format_duration(-duration)}"
    parts: list[str] = []
    units = [(name, size) for name, size in DURATION_UNITS.items() if name != "w"]
    for index, (name, size) in enumerate(units):
        if duration >= size:
            parts.append(f"{duration // size} {name}")
            if index + 1 < len(units) and duration % size >= units[index + 1][1]:
                parts.append(f"{duration % size // units[index + 1][1]} {units[index + 1][0]}")
            break
    return " ".join(parts) or "0 s"


def _text(value: object, expected: str) -> str:
    if not isinstance(value, str):
        # Not TypeError: callers, pydantic among them, pass on the sentence of a ValueError only.
        raise ValueError(f"must be {expected}, in quotes")  # noqa: TRY004
    if not value.strip():
        raise ValueError(f"is empty; must be {expected}")
    return value


def _within(number: int, what: str) -> int:
    if number < 0:
        raise ValueError(f"{what} cannot be negative")
    if number > LARGEST:
        raise ValueError(f"too large for {what}")
    return number


def _why(text: str) -> str:
    """What is wrong with text that is no number with a unit, where that can be told."""
    if text.lstrip().startswith("-"):
        return "; it cannot be negative"
    if any(char.isdigit() and not char.isascii() for char in text):
        return "; only the digits 0 to 9 count"
    if re.match(r"0[0-9]", text):
        return "; a leading zero could mean an octal number"
    if re.match(r"[0-9.]+[eE][-+0-9]", text):
        return "; exponents are not taken"
    return ""


def _similar(unit: str, units: dict[str, int]) -> str:
    """`; did you mean GB?`, or the list of all units."""
    close = [known for known in units if known and known.lower() == unit.lower()]
    if close:
        return f"; did you mean {' or '.join(close)}?"
    return f"; the units are {', '.join(known for known in units if known)}"
