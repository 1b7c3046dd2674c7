"""When was an entry used last? Evidence, trust, and times that lie."""

from dataclasses import dataclass

import pytest

from cachewarden.inventory import Measure
from cachewarden.recency import (
    Confidence,
    atime_usable,
    changed_ns,
    confidence,
    last_use,
    learning,
    recency_source,
)
from cachewarden_policies.policy import DAY, HOUR, MINUTE, SECOND
from cachewarden_policies.reasons import LastUseSource

NOW = 1_700_000_000 * SECOND
YEAR = 365 * DAY


@dataclass(frozen=True)
class Known:
    """What is remembered of an entry that was there before us."""

    first_seen_ns: int = NOW - 100 * DAY
    appeared: bool = False
    last_use_ns: int | None = None
    last_use_source: LastUseSource | None = None
    passing: tuple[int, int, int] | None = None


def measured(*, mtime=40, ctime=40, atime=40, files=1):
    """A measure whose stamps lie so many days back."""
    return Measure(
        files=files, mtime_ns=NOW - mtime * DAY, ctime_ns=NOW - ctime * DAY, atime_ns=NOW - atime * DAY
    )


def used(measure, known=None, atime_mode="noatime", ignore_ctime=False):
    found = last_use(measure, known or Known(), atime_mode=atime_mode, ignore_ctime=ignore_ctime, now_ns=NOW)
    return (NOW - found.ns) / DAY, found.source


@pytest.mark.parametrize(
    ("atime_mode", "expected"),
    [
        ("strictatime", (3, LastUseSource.ATIME)),
        ("relatime", (3, LastUseSource.RELATIME)),
        ("noatime", (40, LastUseSource.STAMPS)),
    ],
)
def test_an_access_time_counts_as_far_as_the_mount_updates_it(atime_mode, expected):
    assert used(measured(atime=3), atime_mode=atime_mode) == expected


def test_a_recorded_open_beats_older_stamps_on_a_mount_that_shows_no_reads():
    known = Known(last_use_ns=NOW - 2 * DAY, last_use_source=LastUseSource.OPENS)
    assert used(measured(), known) == (2, LastUseSource.OPENS)


def test_a_stamp_newer_than_the_last_recorded_open_counts():
    known = Known(last_use_ns=NOW - 20 * DAY, last_use_source=LastUseSource.OPENS)
    assert used(measured(mtime=5), known) == (5, LastUseSource.STAMPS)


def test_a_recorded_stamp_does_not_outlive_the_stamp():
    """Otherwise ignore_ctime = true would come too late for what was recorded before it."""
    known = Known(last_use_ns=NOW - DAY, last_use_source=LastUseSource.STAMPS)
    assert used(measured(), known) == (40, LastUseSource.STAMPS)


def test_of_equally_new_evidence_the_more_trusted_names_the_source():
    known = Known(last_use_ns=NOW - 7 * DAY, last_use_source=LastUseSource.OPENS)
    assert used(measured(mtime=7, atime=7), known, "strictatime") == (7, LastUseSource.OPENS)


@pytest.mark.parametrize(
    ("atime", "counts"),
    [(6, 6), (5, 30), (3, 30), (2, 30), (1, 1)],
    ids=["before it came", "as it came", "while it was there", "as it left", "after it left"],
)
def test_an_access_time_from_when_an_indexer_was_there_proves_no_use(atime, counts):
    """Then the one before it counts."""
    known = Known(passing=(NOW - 5 * DAY, NOW - 2 * DAY, NOW - 30 * DAY))
    assert used(measured(atime=atime), known, "relatime") == (counts, LastUseSource.RELATIME)
    assert used(measured(atime=atime), known, "noatime") == (40, LastUseSource.STAMPS)


def test_who_opened_an_entry_while_an_indexer_was_there_counts():
    known = Known(
        last_use_ns=NOW - 4 * DAY,
        last_use_source=LastUseSource.OPENS,
        passing=(NOW - 5 * DAY, NOW - 2 * DAY, NOW - 30 * DAY),
    )
    assert used(measured(atime=3), known, "strictatime") == (4, LastUseSource.OPENS)


def test_an_indexer_that_came_before_any_access_time_was_known_leaves_the_stamps():
    known = Known(passing=(NOW - 5 * DAY, NOW - 2 * DAY, 0))
    assert used(measured(atime=3), known, "strictatime") == (40, LastUseSource.STAMPS)


@pytest.mark.parametrize("source", LastUseSource)
def test_each_source_says_how_sure_it_is(source):
    assert confidence(source, None).sentence
    exact = confidence(source, "fanotify") is Confidence.EXACT
    assert exact is (source is LastUseSource.OPENS)


def test_a_sample_is_less_sure_than_an_open():
    assert confidence(LastUseSource.OPENS, "proc") is Confidence.SAMPLED


def test_the_newer_of_mtime_and_ctime_counts():
    assert used(measured(mtime=50, ctime=4)) == (4, LastUseSource.STAMPS)
    assert used(measured(mtime=4, ctime=50)) == (4, LastUseSource.STAMPS)


def test_a_nightly_chmod_makes_nothing_young_where_ctime_is_ignored():
    assert used(measured(mtime=50, ctime=0), ignore_ctime=True) == (50, LastUseSource.STAMPS)
    assert changed_ns(measured(mtime=50, ctime=0), ignore_ctime=True, now_ns=NOW) == NOW - 50 * DAY


def test_what_appeared_while_its_location_was_known_is_young_whatever_its_stamps_say():
    known = Known(first_seen_ns=NOW - HOUR, appeared=True)
    assert used(measured(mtime=4000, ctime=4000), known) == (1 / 24, LastUseSource.FIRST_SEEN)


def test_what_was_there_before_us_is_as_old_as_its_stamps():
    assert used(measured(), Known(first_seen_ns=NOW)) == (40, LastUseSource.STAMPS)


def test_a_directory_without_files_is_not_made_young_by_being_listed():
    assert used(measured(atime=0, files=0), atime_mode="strictatime") == (40, LastUseSource.STAMPS)


@pytest.mark.parametrize("ahead", [SECOND, HOUR, DAY])
def test_a_stamp_up_to_a_day_ahead_counts_as_now(ahead):
    measure = Measure(files=1, mtime_ns=NOW + ahead, ctime_ns=NOW - DAY)
    found = last_use(measure, Known(), atime_mode="noatime", ignore_ctime=False, now_ns=NOW)
    assert (found.ns, found.source) == (NOW, LastUseSource.STAMPS)
    assert found.future is (ahead > MINUTE)
    assert changed_ns(measure, ignore_ctime=False, now_ns=NOW) == NOW


def test_a_stamp_ten_years_ahead_does_not_keep_its_entry_for_ten_years():
    """31 days later, with no access since, its last use and its change lie 31 days back."""
    measure = Measure(files=1, mtime_ns=NOW + 10 * YEAR, ctime_ns=NOW)
    later = NOW + 31 * DAY
    found = last_use(
        measure, Known(first_seen_ns=NOW), atime_mode="noatime", ignore_ctime=False, now_ns=later
    )
    assert (found.ns, found.future) == (NOW, True)
    assert changed_ns(measure, ignore_ctime=False, now_ns=later) == NOW


def test_with_nothing_but_far_future_stamps_the_day_it_was_seen_first_counts():
    measure = Measure(files=1, mtime_ns=NOW + YEAR, ctime_ns=NOW + YEAR, atime_ns=NOW + YEAR)
    known = Known(first_seen_ns=NOW - 9 * DAY)
    assert used(measure, known, "strictatime") == (9, LastUseSource.FIRST_SEEN)
    assert changed_ns(measure, ignore_ctime=False, now_ns=NOW) == 0


def test_no_answer_ever_lies_in_the_future():
    known = Known(first_seen_ns=NOW + YEAR, appeared=True)
    assert used(measured(), known) == (0, LastUseSource.FIRST_SEEN)


@pytest.mark.parametrize(
    ("mode", "opens", "source", "usable"),
    [
        ("noatime", False, "stamps", False),
        ("relatime", False, "relatime", True),
        ("strictatime", False, "atime", True),
        ("noatime", True, "opens", False),
    ],
)
def test_the_quality_of_what_is_known_is_named(mode, opens, source, usable):
    assert recency_source(mode, opens_available=opens) == source
    assert atime_usable(mode) is usable


def test_a_location_without_access_times_learns_until_the_time_is_over():
    assert learning(None, DAY, "noatime", NOW)
    assert learning(NOW - DAY + 1, DAY, "noatime", NOW)
    assert not learning(NOW - DAY, DAY, "noatime", NOW)


def test_a_first_scan_in_the_future_is_not_taken_for_long_ago():
    assert learning(NOW + YEAR, DAY, "noatime", NOW)


def test_nothing_is_learned_where_access_times_are_honest_or_no_time_was_set():
    assert not learning(None, DAY, "relatime", NOW)
    assert not learning(None, 0, "noatime", NOW)
