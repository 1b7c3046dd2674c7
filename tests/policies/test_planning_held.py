"""What data shared between entries, the brake and the circumstances of a pass hold back."""

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.policies.one_location import (
    MIB,
    NOW,
    entry,
    gone,
    location,
    plan_of,
    reasons,
    sharing,
    size,
    ten_entries,
)

from cachewarden_policies.planning import make_plan
from cachewarden_policies.policy import DAY, HOUR, Order
from cachewarden_policies.reasons import EvictReason, KeepReason
from cachewarden_policies.situation import Circumstances, Share, Situation


def test_hard_links_within_go_together_at_the_rank_of_the_youngest():
    shared = Share((0, 1), MIB, 1, outside=True)
    entries = [sharing("a", 1, (0,), idle=9 * DAY), sharing("b", 1, (0,), idle=8 * DAY), entry("c")]
    place = location(entries, shares=(shared,), limits=size(1, 1))
    plan = plan_of(place)
    assert gone(place) == ["a", "b"]
    assert [(v.gain_bytes, v.disk_gain_bytes) for v in plan.evictions] == [(0, 0), (MIB, 0)]
    assert plan.planned_bytes == MIB


def test_an_entry_between_the_owners_goes_before_the_group():
    shared = Share((0, 2), MIB, 1)
    entries = [
        sharing("a", 1, (0,), idle=9 * DAY),
        entry("b", idle=8 * DAY),
        sharing("c", 1, (0,), idle=7 * DAY),
    ]
    assert gone(location(entries, shares=(shared,), limits=size(1, 1))) == ["b"]
    assert gone(location(entries, shares=(shared,), limits=size(1, 0))) == ["b", "a", "c"]


def test_shared_data_stays_with_a_guarded_owner_and_the_reason_says_so():
    shared = Share((0, 1), MIB, 1)
    entries = [sharing("a", 1, (0,)), sharing("b", 1, (0,), veto=KeepReason.IN_USE)]
    place = location(entries, shares=(shared,), limits=size(0.5, 0))
    assert reasons(place) == {"a": KeepReason.SHARED_DATA, "b": KeepReason.IN_USE}
    assert plan_of(place).shortfall_bytes == MIB


def test_data_whose_users_are_not_all_known_is_no_gain():
    shared = Share((0,), MIB, 1, kept=True)
    place = location([sharing("a", 1, (0,))], shares=(shared,), limits=size(0.5, 0))
    assert reasons(place) == {"a": KeepReason.NO_GAIN}


def test_a_chain_of_shared_data_goes_as_one_without_recursion():
    count = 3000
    shares = tuple(Share((i, i + 1), MIB, 1) for i in range(count))
    entries = [sharing("e0000", 1, (0,))]
    entries += [sharing(f"e{i:04}", 1, (i - 1, i)) for i in range(1, count)]
    entries += [sharing(f"e{count}", 1, (count - 1,))]
    assert len(gone(location(entries, shares=shares, limits=size(1, 0)))) == count + 1


def test_the_brake_lets_the_share_go_and_holds_the_rest_for_confirmation():
    entries = [entry(f"e{i:02}", idle=(60 - i) * DAY) for i in range(50)]
    place = location(entries, limits=size(5), max_share=Fraction(3, 10))
    plan = plan_of(place)
    assert gone(place) == [f"e{i:02}" for i in range(15)]
    assert plan.brake
    held = [name for name, reason in reasons(place).items() if reason is KeepReason.CONFIRMATION]
    assert held == [f"e{i:02}" for i in range(15, 46)]
    assert plan.shortfall_bytes == plan.need_bytes - 15 * MIB


def brake(entries, **circumstances):
    return location(
        entries, limits=size(5, 5), max_share=Fraction(3, 10), circumstances=Circumstances(**circumstances)
    )


def test_a_location_that_waits_lets_nothing_go_until_it_is_confirmed():
    waiting = plan_of(brake(ten_entries(), waiting=True))
    assert waiting.brake
    assert not waiting.evictions
    assert waiting.blocked == {KeepReason.CONFIRMATION: 5 * MIB}
    confirmed = plan_of(brake(ten_entries(), waiting=True, confirmed=True))
    assert len(confirmed.evictions) == 5
    assert not confirmed.brake


def test_a_location_that_waits_and_is_within_limits_again_waits_no_more():
    plan = plan_of(brake(ten_entries()[:5], waiting=True))
    assert not plan.brake
    assert {v.reason for v in plan.verdicts} == {KeepReason.WITHIN_LIMITS}


def test_one_entry_is_always_allowed_but_only_one():
    entries = [entry("a", 8, idle=9 * DAY), entry("b", 8, idle=8 * DAY)]
    plan = plan_of(brake(entries))
    assert [v.index for v in plan.evictions] == [0]
    assert plan.brake
    after = brake(entries[1:], bytes_at_start=16 * MIB, evicted_bytes=8 * MIB, evicted_entries=1)
    assert not plan_of(after).evictions
    assert plan_of(after).brake


def test_the_brake_sees_the_whole_pass():
    place = brake(ten_entries()[2:], bytes_at_start=10 * MIB, evicted_bytes=2 * MIB, evicted_entries=2)
    assert gone(place) == ["e2"]


def test_a_group_that_the_brake_cuts_does_not_go_by_halves():
    shared = Share((1, 2), 8 * MIB, 1)
    entries = [
        entry("a", 1, idle=9 * DAY),
        sharing("b", 8, (0,), idle=8 * DAY),
        sharing("c", 8, (0,), idle=7 * DAY),
    ]
    place = location(entries, shares=(shared,), limits=size(2, 0), max_share=Fraction(1, 5))
    assert gone(place) == ["a"]
    assert reasons(place)["b"] is KeepReason.CONFIRMATION
    assert reasons(place)["c"] is KeepReason.CONFIRMATION


def test_a_pass_that_plans_again_goes_on_to_the_target():
    begun = Circumstances(bytes_at_start=10 * MIB, evicted_bytes=3 * MIB, evicted_entries=3)
    rest = [replace(e, veto=KeepReason.IN_USE if e.name == b"e3" else None) for e in ten_entries()[3:]]
    assert gone(location(rest, limits=size(8, 6), circumstances=begun)) == ["e4"]
    assert gone(location(rest, limits=size(8, 6))) == []


@pytest.mark.parametrize(
    ("held", "idle_reason", "aged_reason", "ranked_reason"),
    [
        (Circumstances(enforce=False), *[KeepReason.NOT_ENFORCED] * 3),
        (Circumstances(quiet=True), *[KeepReason.QUIET_HOURS] * 3),
        (Circumstances(learning=True), KeepReason.LEARNING, EvictReason.AGED, KeepReason.LEARNING),
        (Circumstances(enforce=False, quiet=True, waiting=True), *[KeepReason.NOT_ENFORCED] * 3),
    ],
)
def test_what_circumstances_hold_back_says_so(held, idle_reason, aged_reason, ranked_reason):
    entries = [
        entry("idle", idle=40 * DAY),
        entry("aged", idle=3 * DAY, age=99 * DAY),
        entry("ranked", 2, idle=2 * DAY),
        entry("rest", 2, idle=2 * HOUR),
        entry("used", veto=KeepReason.IN_USE),
    ]
    place = location(entries, limits=size(4, 3), max_idle=30 * DAY, max_age=90 * DAY, circumstances=held)
    assert reasons(place) == {
        "idle": idle_reason,
        "aged": aged_reason,
        "ranked": ranked_reason,
        "rest": KeepReason.WITHIN_LIMITS,
        "used": KeepReason.IN_USE,
    }
    assert plan_of(place).over_limit
    assert plan_of(place).need_bytes == 4 * MIB


def test_a_clock_that_jumped_stops_age_and_idle_rules_and_no_size_limit():
    entries = [entry("ranked", idle=50 * DAY, age=50 * DAY), entry("idle", idle=40 * DAY, stale=False)]
    entries += [entry("aged", idle=3 * DAY, age=99 * DAY), entry("stale", idle=2 * DAY, stale=True)]
    held = Circumstances(clock_suspect=True)
    place = location(entries, limits=size(3.5, 2), max_idle=30 * DAY, max_age=90 * DAY, circumstances=held)
    assert reasons(place) == {
        "ranked": EvictReason.OVER_SIZE,
        "idle": KeepReason.CLOCK,
        "aged": KeepReason.CLOCK,
        "stale": EvictReason.STALE,
    }


def test_guards_are_judged_by_the_earliest_time_that_it_may_be():
    entries = [
        entry("used", idle=HOUR),
        entry("partial", idle=HOUR, partial=True),
        entry("other", idle=9 * DAY),
    ]
    doubted = Circumstances(clock_suspect=True)
    place = location(
        entries,
        evict_all=True,
        min_idle=DAY,
        partial_max_idle=DAY,
        max_idle=90 * DAY,
        circumstances=doubted,
    )
    later = NOW + 365 * DAY
    doubted_plan = make_plan(Situation(later, [place], sure_ns=NOW)).of("cache")
    assert [verdict.reason for verdict in sorted(doubted_plan.verdicts, key=lambda v: v.index)] == [
        KeepReason.MIN_IDLE,
        KeepReason.PARTIAL,
        EvictReason.OVER_SIZE,
    ]
    believed = make_plan(Situation(later, [place])).of("cache")
    assert len(believed.evictions) == 3


@pytest.mark.parametrize("held", [Circumstances(quiet=True), Circumstances(learning=True)])
def test_hard_limits_act_in_quiet_hours_and_while_learning_and_go_no_further(held):
    place = location(ten_entries(), limits=size(5, 2, hard=8), circumstances=held)
    assert gone(place) == ["e0", "e1"]
    assert reasons(place)["e0"] is EvictReason.OVER_HARD_SIZE
    assert reasons(place)["e7"] in {KeepReason.QUIET_HOURS, KeepReason.LEARNING}
    assert reasons(place)["e8"] is KeepReason.WITHIN_LIMITS


@pytest.mark.parametrize("held", [Circumstances(quiet=True), Circumstances(learning=True)])
def test_in_quiet_hours_and_while_learning_the_hard_limit_takes_the_fewest_that_suffice(held):
    entries = [entry("small", 1, idle=9 * DAY), entry("big", 10, idle=8 * DAY)]
    entries += [entry("used", 3, veto=KeepReason.IN_USE)]
    place = location(entries, limits=size(3, 1, hard=5), circumstances=held)
    assert gone(place) == ["big"]


@pytest.mark.parametrize("order", Order)
def test_learning_holds_back_the_orders_that_need_last_use_and_no_others(order):
    held = Circumstances(learning=True)
    place = location(ten_entries(), limits=size(8, 6), order=order, circumstances=held)
    assert len(gone(place)) == (4 if order in {Order.OLDEST, Order.LARGEST} else 0)
    assert plan_of(place).short is (order in {Order.LRU, Order.CHEAPEST})
    assert (KeepReason.LEARNING in reasons(place).values()) is (order in {Order.LRU, Order.CHEAPEST})


def test_while_learning_idle_entries_wait_but_the_oldest_go_for_the_limit():
    held = Circumstances(learning=True)
    entries = [entry("idle", idle=40 * DAY, age=40 * DAY), entry("old", age=90 * DAY), entry("young")]
    rules = {"max_idle": 30 * DAY, "order": Order.OLDEST, "circumstances": held}
    assert reasons(location(entries, limits=size(2, 2), **rules)) == {
        "idle": KeepReason.LEARNING,
        "old": EvictReason.OVER_SIZE,
        "young": KeepReason.WITHIN_LIMITS,
    }


def test_quiet_hours_are_the_reason_where_learning_would_let_it_go():
    held = Circumstances(learning=True, quiet=True)
    place = location(ten_entries(), limits=size(9, 9), order=Order.OLDEST, circumstances=held)
    assert reasons(place)["e0"] is KeepReason.QUIET_HOURS


def test_report_only_goes_no_further_above_the_hard_limit():
    place = location(ten_entries(), limits=size(8, 6, hard=7), circumstances=Circumstances(enforce=False))
    plan = plan_of(place)
    assert not plan.evictions
    assert plan.shortfall_bytes == plan.need_bytes == 4 * MIB
    assert plan.blocked == {KeepReason.NOT_ENFORCED: 4 * MIB}


def test_evict_all_is_about_entries_and_what_is_foreign_never_makes_it_short():
    place = location([entry("a"), entry("b", 0)], usage=110 * MIB, files=7, evict_all=True, min_idle=0)
    assert gone(place) == ["a", "b"]
    assert (plan_of(place).short, plan_of(place).shortfall_bytes) == (False, 0)
