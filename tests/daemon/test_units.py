"""Values as people type them: each means one thing, or is an error that says why."""

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewarden.units import (
    LARGEST,
    ClockRange,
    format_duration,
    format_size,
    parse_amount,
    parse_clock_range,
    parse_count,
    parse_count_amount,
    parse_duration,
    parse_share,
    parse_size,
)
from cachewarden_policies.policy import Amount

SECOND = 10**9
HOUR = 3600 * SECOND
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("typed", "size"),
    [
        ("10GB", 10_000_000_000),
        ("10GiB", 10_737_418_240),
        ("10G", 10_737_418_240),
        ("1.5TiB", 1_649_267_441_664),
        ("1073741824", 1_073_741_824),
        (1_073_741_824, 1_073_741_824),
        ("10 GiB", 10_737_418_240),
        ("0", 0),
        (0, 0),
        ("0.5MiB", 524_288),
        ("7B", 7),
        ("1kB", 1000),
        ("1KB", 1000),
        ("1k", 1024),
        ("1K", 1024),
        ("2PiB", 2 * 1024**5),
        ("1.0000000001kB", 1000),
    ],
)
def test_a_size_means_exactly_what_is_written(typed: object, size: int) -> None:
    assert parse_size(typed) == size


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("-1", "negative"),
        (-1, "negative"),
        ("10X", "X is not a unit of size"),
        ("1e3", "exponents"),
        ("1e3GiB", "exponents"),
        (1e3, "in quotes"),
        (float("nan"), "in quotes"),
        ("", "empty"),
        ("  ", "empty"),
        ("nan", "not a size"),
        ("inf", "not a size"),
        ("10GBB", "GBB is not a unit of size"),
        ("09", "leading zero"),
        ("٣GB", "digits 0 to 9"),
        ("³GB", "digits 0 to 9"),
        ("+5GiB", "not a size"),
        ("1_000", "not a size"),
        ("1,5GiB", "not a size"),
        (".5GiB", "not a size"),
        ("5.GiB", "not a size"),
        ("10\u00a0GiB", "not a size"),
        (" 10GiB", "not a size"),
        ("10GiB\n", "not a size"),
        ("10  GiB", "not a size"),
        ("0x10", "not a size"),
        ("10gb", "did you mean GB"),
        ("10gib", "did you mean GiB"),
        ("10Gb", "did you mean GB"),
        ("1.5", "fractions of a byte"),
        ("1.5B", "fractions of a byte"),
        ("9EiB", "too large"),
        ("9999999999999999999999", "too large"),
        (True, "in quotes"),
        (None, "in quotes"),
        ([], "in quotes"),
        ("50%", "not a size"),
    ],
)
def test_a_size_that_could_mean_something_else_is_an_error(typed: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_size(typed)


@pytest.mark.parametrize(
    ("typed", "duration"),
    [
        ("50ms", 50 * 10**6),
        ("90s", 90 * SECOND),
        ("15m", 900 * SECOND),
        ("12h", 12 * HOUR),
        ("30d", 30 * DAY),
        ("2w", 14 * DAY),
        ("1d12h", DAY + 12 * HOUR),
        ("1d 12h", DAY + 12 * HOUR),
        ("3 d 4 h", 3 * DAY + 4 * HOUR),
        ("1w2d3h4m5s6ms", 9 * DAY + 3 * HOUR + 245 * SECOND + 6 * 10**6),
        ("1.5h", 5400 * SECOND),
        ("0", 0),
        (0, 0),
        ("0s", 0),
    ],
)
def test_a_duration_means_exactly_what_is_written(typed: object, duration: int) -> None:
    assert parse_duration(typed) == duration


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("-1d", "negative"),
        (-1, "negative"),
        ("1h1e3s", "e is not a unit of time"),
        ("10X", "X is not a unit of time"),
        ("1e3s", "exponents"),
        (1e3, "in quotes"),
        ("", "empty"),
        ("nan", "not a duration"),
        ("30dd", "dd is not a unit of time"),
        ("30days", "days is not a unit of time"),
        ("15min", "min is not a unit of time"),
        ("30D", "did you mean d"),
        ("15M", "did you mean m"),
        ("10GB", "GB is not a unit of time"),
        ("09d", "leading zero"),
        ("٣d", "digits 0 to 9"),
        ("30", "needs a unit"),
        (30, "needs a unit"),
        ("1073741824", "needs a unit"),
        ("12h1d", "largest unit to the smallest"),
        ("1d1d", "largest unit to the smallest"),
        ("1d12", "not a duration"),
        ("1d,12h", "not a duration"),
        (" 1d", "not a duration"),
        ("1d ", "not a duration"),
        ("1d-12h", "not a duration"),
        ("400000w", "too large"),
        (False, "in quotes"),
        (None, "in quotes"),
    ],
)
def test_a_duration_that_could_mean_something_else_is_an_error(typed: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_duration(typed)


@pytest.mark.parametrize(
    ("typed", "share"),
    [("50%", Fraction(1, 2)), ("0%", Fraction(0)), ("100%", Fraction(1)), ("12.5 %", Fraction(1, 8))],
)
def test_a_share_is_a_percentage(typed: str, share: Fraction) -> None:
    assert parse_share(typed) == share


@pytest.mark.parametrize("typed", ["101%", "-1%", "50", "%", "٣%", "1e1%", "050%", "50%%", 0.5, 50, ""])
def test_anything_else_is_no_share(typed: object) -> None:
    with pytest.raises(ValueError, match=r"percentage|negative"):
        parse_share(typed)


def test_an_amount_is_a_share_or_a_size() -> None:
    assert parse_amount("10%") == Amount(share=Fraction(1, 10))
    assert parse_amount("10GiB") == Amount(absolute=10 * 1024**3)
    assert parse_count_amount("10%") == Amount(share=Fraction(1, 10))
    assert parse_count_amount(500) == Amount(absolute=500)
    with pytest.raises(ValueError, match="whole number"):
        parse_count_amount("10GiB")


@pytest.mark.parametrize("typed", ["1e3", "09", "-5", "٣", "", "5 files", 1.5, True, "1_000"])
def test_a_count_is_a_whole_number(typed: object) -> None:
    assert parse_count("500000") == parse_count(500_000) == 500_000
    with pytest.raises(ValueError, match=r"whole number"):
        parse_count(typed)


def test_a_part_of_the_day_contains_its_start_and_not_its_end() -> None:
    office = parse_clock_range("08:00-18:00")
    assert office == ClockRange(480, 1080)
    assert [office.contains(minute) for minute in (479, 480, 1079, 1080)] == [False, True, True, False]


def test_a_part_of_the_day_may_go_over_midnight() -> None:
    night = parse_clock_range("22:00-06:00")
    assert [night.contains(minute) for minute in (0, 359, 360, 1319, 1320, 1439)] == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]
    assert all(parse_clock_range("00:00-24:00").contains(minute) for minute in range(1440))


@pytest.mark.parametrize("typed", ["8:00-18:00", "08:00", "08:00-25:00", "08:60-09:00", "08:00-08:00", "", 8])
def test_a_part_of_the_day_has_two_digits_and_two_ends(typed: object) -> None:
    with pytest.raises(ValueError, match=r"part of the day|same time"):
        parse_clock_range(typed)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1024, "1 KiB"),
        (1023, "1023 B"),
        (1536 * 1024**2, "1.5 GiB"),
        (1024**2 - 1, "1 MiB"),
        (200 * 1024**3, "200 GiB"),
        (-1536, "-1.5 KiB"),
        (LARGEST, "8 EiB"),
    ],
)
def test_sizes_are_shown_with_one_decimal_at_most(size: int, shown: str) -> None:
    assert format_size(size) == shown


@pytest.mark.parametrize(
    ("duration", "shown"),
    [
        (0, "0 s"),
        (999, "0 s"),
        (50 * 10**6, "50 ms"),
        (90 * SECOND, "1 m 30 s"),
        (3 * DAY + 4 * HOUR + 5, "3 d 4 h"),
        (3 * DAY + 5 * SECOND, "3 d"),
        (14 * DAY, "14 d"),
        (-HOUR, "-1 h"),
    ],
)
def test_durations_are_shown_by_their_two_largest_units(duration: int, shown: str) -> None:
    assert format_duration(duration) == shown


@given(st.integers(min_value=0, max_value=LARGEST))
def test_what_is_shown_can_be_typed_again(number: int) -> None:
    """Within what two units, or one decimal, can say."""
    again = parse_duration(format_duration(number))
    assert again <= number
    assert number - again < max(10**6, number // 24)
    if number < 7 * 1024**6:
        assert abs(parse_size(format_size(number)) - number) <= number / 19 + 1


@given(st.text())
def test_no_text_makes_a_parser_fail_in_another_way(text: str) -> None:
    """The caller turns ValueError into a message with file and line; anything else would be a crash."""
    for parse in (parse_size, parse_duration, parse_amount, parse_share, parse_count, parse_clock_range):
        with suppress(ValueError):
            parse(text)
