"""How numbers, times and reasons are said."""

import pytest

from cachewarden.cli import words
from cachewarden.ledger import FOREVER
from cachewarden.report import Holder
from cachewarden_policies.policy import DAY, HOUR, MINUTE, SECOND
from cachewarden_policies.reasons import Cost, EvictReason, KeepReason, Outcome

NOW = 1_700_000_000 * SECOND


@pytest.mark.parametrize(
    ("distance", "said"),
    [
        (0, "now"),
        (-SECOND // 2, "now"),
        (-59 * SECOND, "59 s ago"),
        (-3 * MINUTE - 59 * SECOND, "3 min ago"),
        (-23 * HOUR, "23 h ago"),
        (-400 * DAY, "400 d ago"),
        (30 * SECOND, "in 30 s"),
        (3 * DAY - SECOND, "in 3 d"),
        (HOUR - SECOND, "in 1 h"),
        (2 * HOUR + 40 * MINUTE, "in 2 h"),
    ],
)
def test_a_time_is_told_by_its_distance(distance, said):
    """The past rounded down, the future to the minute: what was set for 3 d does not end in 2 d."""
    assert words.relative(NOW + distance, NOW) == said


def test_what_never_was_is_never():
    """And no end is no date."""
    assert words.relative(None, NOW) == "never"
    assert words.until(None, NOW) == words.until(FOREVER, NOW) == "until it is taken back"


def test_a_deadline_is_told_by_the_clock_and_by_its_distance(monkeypatch):
    """In local time."""
    assert words.until(NOW + HOUR, NOW).endswith("(in 1 h)")


@pytest.mark.parametrize(
    ("part", "said"), [(0, "0 %"), (999, "99 %"), (1000, "100 %"), (1001, "100 %"), (2500, "250 %")]
)
def test_a_share_below_the_whole_is_never_called_all(part, said):
    """99.9 % is 99 %."""
    assert words.percent(part, 1000) == said


def test_every_reason_outcome_and_cost_has_its_words():
    """A new member without words would end a command."""
    assert set(words.SHORT) == set(KeepReason)
    assert set(words.OUTCOME) == set(Outcome)
    assert set(words.MISS) == set(Cost)


def test_history_may_hold_a_reason_that_only_a_newer_version_knows():
    """It is shown by its name."""
    assert words.sentence("idle") == EvictReason.IDLE.sentence
    assert words.sentence("in_use") == KeepReason.IN_USE.sentence
    assert words.sentence("out_of_fashion") == "out_of_fashion"


@pytest.mark.parametrize(
    ("holder", "said"),
    [
        (Holder("open", 812, "python3", "anna"), "python3 (pid 812, anna) has it open"),
        (Holder("cwd", 9, "bash", ""), "bash (pid 9) works in it (current directory)"),
        (Holder("mapped", 9, "", "anna"), "a process (pid 9, anna) has it mapped into its memory"),
        (Holder("lock"), "somebody holds its lock"),
        (Holder("lease"), "somebody has it open"),
        (Holder("telepathy", 1, "x"), "x (pid 1) uses it (telepathy)"),
    ],
)
def test_a_holder_is_named_as_far_as_it_is_known(holder, said):
    """Also one of a kind that a newer version knows."""
    assert words.holder(holder) == said
