"""Whole passes over real files: where they stop, what they spare, what they book."""

import os
from fractions import Fraction

import pytest
from tests.daemon.passes import DAY, MIB, Field, Orders, holding, limit, policy

from cachewarden.enforce.circumstances import Mood
from cachewarden.ledger import Pin
from cachewarden_policies.policy import Amount, Floor, Limits
from cachewarden_policies.reasons import EvictReason, KeepReason, LastUseSource, Outcome


@pytest.fixture
def field(tmp_path):
    """An empty location."""
    return Field(tmp_path)


def evicted(report):
    """Names of what went, in order."""
    return [each.entry.decode() for each in report.evicted]


def spared(report):
    """What was spared, and why."""
    return {each.entry.decode(): each.reason for each in report.spared}


def test_a_pass_stops_exactly_at_the_low_mark_and_the_next_one_does_nothing(field):
    for number in range(10):
        field.entry(f"e{number}", days=20 - number)
    report = field.run(policy(limits=limit(8, 6)))
    assert evicted(report) == ["e0", "e1", "e2", "e3"]
    assert (report.outcome, report.bytes_after, report.shortfall_bytes) == (Outcome.TRIMMED, 6 * MIB, 0)
    again = field.run(policy(limits=limit(8, 6)))
    assert (again.outcome, evicted(again)) == (Outcome.WITHIN_LIMITS, [])


def test_usage_equal_to_the_limit_is_within_it(field):
    for number in range(8):
        field.entry(f"e{number}")
    assert evicted(field.run(policy(limits=limit(8, 6)))) == []


def test_what_is_in_use_stays_and_the_next_in_order_goes_instead(field):
    field.entry("old", days=30)
    field.entry("young", days=1)
    with holding("f = open(sys.argv[1])", str(field.root / "old" / "f")):
        report = field.run(policy(limits=limit(1)))
    assert evicted(report) == ["young"]
    assert spared(report)["old"] is KeepReason.IN_USE
    assert field.names() == ["old"]


def test_a_limit_that_cannot_be_met_is_short_and_says_what_blocks_it(field):
    field.entry("old", mib=3)
    with holding("f = open(sys.argv[1])", str(field.root / "old" / "f")):
        report = field.run(policy(limits=limit(1)))
    assert report.outcome is Outcome.SHORT
    assert report.shortfall_bytes == 2 * MIB
    assert report.blocked == {KeepReason.IN_USE: 3 * MIB}


def test_hard_links_between_entries_go_together_and_free_nothing_while_a_link_is_outside(field):
    field.entry("a")
    (field.root / "b").mkdir()
    os.link(field.root / "a" / "f", field.root / "b" / "f")
    os.link(field.root / "a" / "f", field.base / "outside")
    field.entry("c", days=1)
    report = field.run(policy(limits=limit(1)))
    assert report.bytes_before == 2 * MIB
    assert sorted(evicted(report)) == ["a", "b"]
    assert (report.bytes_after, sum(each.freed_bytes for each in report.evicted)) == (MIB, 0)
    assert (field.base / "outside").stat().st_size == MIB


def test_a_sparse_file_counts_what_it_allocates(field):
    (field.root / "e").mkdir()
    with (field.root / "e" / "w").open("wb") as file:
        file.truncate(10 << 30)
        file.seek(5 << 30)
        file.write(b"x")
    report = field.run(policy(limits=limit(1024)))
    assert report.bytes_before == 4096
    assert report.outcome is Outcome.WITHIN_LIMITS


def test_a_pin_holds_an_entry_whatever_the_limit(field):
    field.entry("pinned", days=30)
    field.entry("other")
    now = field.clock.wall_ns()
    field.pins.add(Pin(os.fsencode(field.root / "pinned" / "f"), now, None, "paper"), now)
    report = field.run(policy(evict_all=True))
    assert evicted(report) == ["other"]
    assert spared(report) == {"pinned": KeepReason.PINNED}


def test_unreadable_pins_mean_that_everything_is_pinned(field):
    field.entry("e")
    state = field.base / "state"
    for name in ("pins.json", "pins.json.copy"):
        (state / name).write_text("not json")
    report = field.run(policy(evict_all=True))
    assert evicted(report) == []
    assert spared(report) == {"e": KeepReason.PINNED}
    assert any("everything counts as pinned" in notice for notice in field.heard.notices)


def test_age_counts_from_the_first_look_and_a_stamp_of_the_future_expires_too(field):
    field.file("unpacked", days=4000)
    field.file("future", days=-3650)
    field.file("plain", days=0)
    rules = policy(max_age=30 * DAY)
    assert evicted(field.run(rules)) == []
    field.restart()
    field.clock.advance(31 * DAY)
    assert sorted(evicted(field.run(rules))) == ["future", "plain", "unpacked"]


def test_what_appears_between_two_passes_is_young_whatever_its_stamps_say(field):
    field.entry("before", days=40)
    rules = policy(max_idle=30 * DAY, limits=limit(100))
    assert evicted(field.run(rules)) == ["before"]
    field.entry("unpacked", days=4000)
    assert evicted(field.run(rules)) == []
    field.clock.advance(31 * DAY)
    report = field.run(rules)
    assert evicted(report) == ["unpacked"]
    assert report.evicted[0].reason is EvictReason.IDLE
    assert report.evicted[0].last_use_source is LastUseSource.FIRST_SEEN


def test_the_brake_stops_at_the_share_waits_over_restarts_and_goes_on_when_confirmed(field):
    for number in range(50):
        field.file(f"e{number:02}", mib=0.0625, days=60 - number)
    half = policy(limits=Limits(max_size=5 * MIB // 16), max_share=Fraction(3, 10))
    first = field.run(half)
    assert (first.outcome, len(first.evicted)) == (Outcome.WAITING, 15)
    field.restart()
    second = field.run(half)
    assert (second.outcome, len(second.evicted)) == (Outcome.WAITING, 0)
    assert set(spared(second).values()) == {KeepReason.CONFIRMATION}
    state = field.ledger.location_state(field.spec(half).key)
    assert (state.waiting_entries, state.waiting_bytes) == (31, 31 * MIB // 16)
    field.ledger.confirm(field.spec(half), field.clock.wall_ns() + DAY, field.clock.wall_ns())
    third = field.run(half)
    assert (third.outcome, len(third.evicted)) == (Outcome.TRIMMED, 31)
    state = field.ledger.location_state(field.spec(half).key)
    assert (state.waiting_since_ns, state.confirmed_until_ns) == (None, None)


def test_once_with_yes_confirms_that_pass_only(field):
    for number in range(10):
        field.entry(f"e{number}")
    rules = policy(limits=limit(1), max_share=Fraction(1, 2))
    report = field.run(rules, Orders(Mood(confirmed=True)))
    assert (report.outcome, len(report.evicted)) == (Outcome.TRIMMED, 9)


def test_a_pause_lets_nothing_go_and_its_end_does(field):
    field.entry("e")
    now = field.clock.wall_ns()
    field.ledger.pause(None, now, now + DAY)
    report = field.run(policy(evict_all=True))
    assert (evicted(report), spared(report)) == ([], {"e": KeepReason.NOT_ENFORCED})
    field.clock.advance(DAY)
    assert evicted(field.run(policy(evict_all=True))) == ["e"]


def test_report_only_says_what_would_go_by_its_shortfall(field):
    field.entry("e", mib=3)
    report = field.run(policy(limits=limit(1)), enforce=False)
    assert (evicted(report), report.need_bytes, report.outcome) == ([], 2 * MIB, Outcome.SHORT)
    assert report.blocked == {KeepReason.NOT_ENFORCED: 3 * MIB}


def test_quiet_hours_hold_back_the_soft_limit_but_not_the_hard_one(field):
    for number in range(6):
        field.entry(f"e{number}", days=20 - number)
    limits = Limits(max_size=2 * MIB, hard_max_size=4 * MIB)
    report = field.run(policy(limits=limits), Orders(Mood(quiet=True)))
    assert evicted(report) == ["e0", "e1"]
    assert {each.reason for each in report.evicted} == {EvictReason.OVER_HARD_SIZE}


def test_an_eviction_that_comes_back_is_counted_as_fetched_again(field):
    field.entry("model", mib=2)
    field.run(policy(evict_all=True))
    field.entry("model", mib=2)
    field.run(policy(limits=limit(100)))
    assert field.heard.refetched_bytes == 2 * MIB


def test_free_space_is_asked_from_all_that_is_on_the_disk_and_stops_when_it_is_there(field):
    for number in range(4):
        field.entry(f"e{number}", days=20 - number)
    space = os.statvfs(field.root)
    wanted = space.f_bavail * space.f_frsize + MIB // 2
    report = field.run(policy(floor=Floor(min_free=Amount(absolute=wanted))))
    assert evicted(report)[:1] == ["e0"]
    assert {each.reason for each in report.evicted} == {EvictReason.LOW_FREE_SPACE}


def test_a_revision_that_becomes_the_only_one_keeps_its_history_under_its_new_name(field):
    commits = ["a" * 40, "b" * 40]
    repo = field.root / "models--o--m"
    for commit in commits:
        (repo / "snapshots" / commit).mkdir(parents=True)
        (repo / "blobs").mkdir(exist_ok=True)
        field.file(f"models--o--m/blobs/{commit[:3]}", days=9 if commit[0] == "a" else 2)
        os.symlink(f"../../blobs/{commit[:3]}", repo / "snapshots" / commit / "w")
        old = field.clock.wall_ns() / 1e9 - (9 if commit[0] == "a" else 2) * 86400
        os.utime(repo / "snapshots" / commit / "w", (old, old), follow_symlinks=False)
    rules = policy(limits=limit(1))
    first = field.run(rules)
    assert evicted(first) == [f"models--o--m@{commits[0]}"]
    field.clock.advance(DAY)
    field.run(rules)
    record = field.ledger.records(field.spec(rules).key)[b"models--o--m"]
    assert record.appeared is False


def test_a_location_that_its_user_deleted_is_no_failure_and_nothing_is_forgotten(field):
    field.entry("e")
    field.run(policy(limits=limit(100)))
    field.root.rename(field.base / "elsewhere")
    report = field.run(policy(limits=limit(100)))
    assert report.outcome is Outcome.WITHIN_LIMITS
    assert "is not there" in report.warnings[0]
    assert list(field.ledger.records(field.spec(policy()).key)) == [b"e"]
