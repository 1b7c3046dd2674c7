"""Which entries go for a location's own limits, in which order, and what the others are told."""

import pytest
from tests.policies.one_location import MIB, NOW, entry, gone, location, plan_of, reasons, size, ten_entries

from cachewarden_policies.planning import make_plan
from cachewarden_policies.policy import DAY, HOUR, MINUTE, Amount, Limits, Order
from cachewarden_policies.reasons import Cost, EvictReason, KeepReason
from cachewarden_policies.situation import Situation


def test_eviction_stops_exactly_at_the_target():
    place = location(ten_entries(), limits=size(8, 6))
    plan = plan_of(place)
    assert gone(place) == ["e0", "e1", "e2", "e3"]
    assert [v.rank for v in plan.evictions] == [0, 1, 2, 3]
    assert {v.reason for v in plan.evictions} == {EvictReason.OVER_SIZE}
    assert (plan.need_bytes, plan.planned_bytes, plan.shortfall_bytes) == (4 * MIB, 4 * MIB, 0)
    assert plan.over_limit
    assert plan.blocked == {}


def test_usage_equal_to_the_limit_is_within_it():
    plan = plan_of(location(ten_entries(), limits=size(10, 6)))
    assert not plan.evictions
    assert not plan.over_limit
    assert {v.reason for v in plan.verdicts} == {KeepReason.WITHIN_LIMITS}


def test_a_limit_that_guards_make_unreachable_is_said_in_advance():
    giant = entry("giant", 12, idle=0, veto=KeepReason.IN_USE)
    place = location([*ten_entries(), giant], limits=size(8, 6))
    plan = plan_of(place)
    assert "giant" not in gone(place)
    assert len(gone(place)) == 10
    assert plan.shortfall_bytes == 6 * MIB
    assert plan.blocked == {KeepReason.IN_USE: 12 * MIB}


def test_foreign_bytes_count_against_the_limit_and_no_entry_covers_them():
    plan = plan_of(location(ten_entries(), usage=30 * MIB, limits=size(8, 6)))
    assert len(plan.evictions) == 10
    assert plan.shortfall_bytes == 14 * MIB


def test_a_policy_without_limits_lets_nothing_go():
    entries = [
        entry("stale", stale=True),
        entry("partial", partial=True, idle=9 * DAY),
        entry("old", idle=999 * DAY),
    ]
    assert gone(location(entries)) == []


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (Order.LRU, ["small", "big", "young"]),
        (Order.OLDEST, ["young", "big", "small"]),
        (Order.LARGEST, ["big", "young", "small"]),
        (Order.CHEAPEST, ["young", "big", "small"]),
    ],
)
def test_the_order_is_the_policys(order, expected):
    entries = [
        entry("small", 1, idle=9 * DAY, age=9 * DAY),
        entry("big", 4, idle=8 * DAY, age=10 * DAY),
        entry("young", 2, idle=5 * DAY, age=30 * DAY, cost=Cost.DERIVED),
    ]
    assert gone(location(entries, limits=size(1, 0), order=order)) == expected


def test_ties_go_to_the_earlier_change_then_to_the_name():
    entries = [entry("b", idle=DAY), entry("a", idle=DAY), entry("c", idle=DAY, age=2 * DAY)]
    assert gone(location(entries, limits=size(2, 0))) == ["c", "a", "b"]


def test_a_nanosecond_is_not_a_tie():
    entries = [entry("a", idle=DAY, age=DAY), entry("b", idle=DAY + 1, age=DAY)]
    assert gone(location(entries, limits=size(1.5, 1))) == ["b"]


def test_last_uses_in_the_future_tie_as_now():
    entries = [entry("b", idle=-9 * DAY, age=DAY), entry("a", idle=-5 * DAY, age=DAY)]
    assert gone(location(entries, limits=size(1, 0), min_idle=0)) == ["a", "b"]


def test_an_old_small_entry_is_spared_when_the_big_one_that_has_to_go_suffices():
    entries = [entry("small", 1, idle=9 * DAY), entry("big", 10, idle=8 * DAY)]
    place = location(entries, limits=size(10, 5))
    assert gone(place) == ["big"]
    assert reasons(place)["small"] is KeepReason.WITHIN_LIMITS


def test_a_limit_of_files_takes_many_small_files_and_not_the_one_big():
    entries = [entry("file", 100, files=1, idle=9 * DAY), entry("tiny", 1, files=1000, idle=8 * DAY)]
    place = location(entries, limits=Limits(max_files=500, target_files=Amount(absolute=10)))
    assert reasons(place) == {"file": KeepReason.WITHIN_LIMITS, "tiny": EvictReason.OVER_FILES}
    assert plan_of(place).over_limit


def test_a_limit_of_entries_takes_as_many_as_are_too_many():
    place = location(ten_entries(), limits=Limits(max_entries=9, target_entries=Amount(absolute=8)))
    assert gone(place) == ["e0", "e1"]
    assert reasons(place)["e0"] is EvictReason.OVER_ENTRIES


@pytest.mark.parametrize(
    ("policy", "one", "reason"),
    [
        ({"max_idle": DAY, "max_age": DAY}, entry("x", idle=9 * DAY, stale=True), EvictReason.STALE),
        ({"max_idle": DAY}, entry("x", idle=9 * DAY, partial=True), EvictReason.PARTIAL),
        ({"max_idle": 30 * DAY}, entry("x", idle=30 * DAY + 1), EvictReason.IDLE),
        ({"max_idle": 30 * DAY}, entry("x", idle=30 * DAY), KeepReason.WITHIN_LIMITS),
        ({"max_idle": 30 * DAY}, entry("x", idle=-DAY), KeepReason.MIN_IDLE),
        ({"max_age": 30 * DAY}, entry("x", idle=2 * HOUR, age=31 * DAY), EvictReason.AGED),
        ({"max_age": 30 * DAY}, entry("x", idle=2 * HOUR, age=30 * DAY), KeepReason.WITHIN_LIMITS),
        ({"max_idle": DAY}, entry("x", idle=HOUR * 2, stale=True), EvictReason.STALE),
        ({"max_idle": 9 * DAY}, entry("x", idle=DAY + 1, partial=True), EvictReason.PARTIAL),
        ({"max_idle": 9 * DAY}, entry("x", idle=DAY, partial=True), KeepReason.PARTIAL),
        ({"max_idle": DAY}, entry("x", idle=2 * DAY, veto=KeepReason.PINNED), KeepReason.PINNED),
        ({"max_idle": DAY, "protect": ("x",)}, entry("x", idle=2 * DAY), KeepReason.PROTECTED),
        ({"max_idle": DAY, "keep_newest": 1}, entry("x", idle=2 * DAY), KeepReason.KEEP_NEWEST),
        ({"max_idle": MINUTE}, entry("x", idle=2 * MINUTE), KeepReason.MIN_IDLE),
    ],
)
def test_expiry_acts_whatever_the_usage_and_respects_guards(policy, one, reason):
    assert reasons(location([one], **policy))["x"] is reason


def test_age_counts_from_the_latest_of_first_seen_and_a_credible_change():
    """Unpacked with old stamps: young. Stamped in the future: first seen counts, so that it ages at all."""
    unpacked = entry("unpacked", idle=2 * HOUR, changed_ns=NOW - 4000 * DAY, first_seen_ns=NOW - HOUR)
    future = entry("future", idle=2 * HOUR, changed_ns=NOW + 3650 * DAY, first_seen_ns=NOW - HOUR)
    place = location([unpacked, future, entry("plain", idle=2 * HOUR)], max_age=30 * DAY)
    assert gone(place) == []
    later = make_plan(Situation(NOW + 31 * DAY, [place]))
    assert {v.reason for v in later.of("cache").verdicts} == {EvictReason.AGED}


def test_what_expires_goes_first_and_counts_towards_the_target():
    place = location(ten_entries(), limits=size(8, 6), max_idle=int(18.5 * DAY))
    plan = plan_of(place)
    assert [v.reason for v in plan.evictions] == [EvictReason.IDLE] * 2 + [EvictReason.OVER_SIZE] * 2


def test_soft_guards_yield_above_the_hard_limit_only_and_only_as_far():
    entries = [entry(f"fresh{i}", idle=(9 - i) * MINUTE) for i in range(6)] + [entry("idle", idle=DAY)]
    place = location(entries, limits=size(3, 1, hard=5))
    assert gone(place) == ["idle", "fresh0"]
    assert [v.reason for v in plan_of(place).evictions] == [EvictReason.OVER_SIZE, EvictReason.OVER_HARD_SIZE]
    assert reasons(place)["fresh1"] is KeepReason.MIN_IDLE
    assert plan_of(place).shortfall_bytes == 4 * MIB


def test_above_the_hard_limit_a_soft_guarded_entry_is_spared_when_a_bigger_one_suffices():
    entries = [entry("small", 1, idle=9 * MINUTE), entry("big", 10, idle=8 * MINUTE)]
    entries += [entry("used", 3, veto=KeepReason.IN_USE)]
    assert gone(location(entries, limits=size(3, 1, hard=5))) == ["big"]


def test_a_guarded_entry_that_would_free_nothing_keeps_the_guards_reason():
    entries = [entry("empty", 0, idle=9 * MINUTE), entry("used", 9, veto=KeepReason.IN_USE)]
    assert reasons(location(entries, limits=size(3, 1, hard=5)))["empty"] is KeepReason.MIN_IDLE


def test_hard_guards_do_not_yield_above_the_hard_limit():
    entries = [entry("used", 9, veto=KeepReason.IN_USE), entry("golden", 9)]
    place = location(entries, limits=size(3, 1, hard=5), protect=("golden",))
    assert gone(place) == []
    assert plan_of(place).blocked == {KeepReason.IN_USE: 9 * MIB, KeepReason.PROTECTED: 9 * MIB}


def test_keep_newest_counts_guarded_entries_too():
    entries = [entry("a", idle=3 * DAY), entry("b", idle=2 * DAY), entry("c", veto=KeepReason.IN_USE)]
    place = location(entries, limits=size(1, 0), keep_newest=2)
    assert reasons(place) == {
        "a": EvictReason.OVER_SIZE,
        "b": KeepReason.KEEP_NEWEST,
        "c": KeepReason.IN_USE,
    }


def test_evict_all_takes_everything_unguarded_also_what_is_empty():
    entries = [entry("full"), entry("empty", 0, files=0), entry("fresh", idle=MINUTE)]
    place = location(entries, evict_all=True)
    assert reasons(place) == {
        "full": EvictReason.OVER_SIZE,
        "empty": EvictReason.OVER_SIZE,
        "fresh": KeepReason.MIN_IDLE,
    }


def test_a_location_without_entries_has_an_empty_plan():
    plan = plan_of(location([], limits=size(8, 6), max_idle=DAY))
    assert (len(plan.verdicts), plan.over_limit, plan.need_bytes) == (0, False, 0)
