"""`order = "cheapest"`: bytes won, by how long nobody used them, for what a miss costs; stale ones first."""

import os
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policies.one_location import MIB, NOW, entry, gone, location, reasons, sharing, size

from cachewarden_policies.ordering import WEIGHTS, cheapness
from cachewarden_policies.policy import DAY, HOUR, Order
from cachewarden_policies.reasons import Cost, EvictReason, KeepReason
from cachewarden_policies.situation import Circumstances, Share

GUIDE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "guide", "README.md")
CHEAPEST = {"order": Order.CHEAPEST, "min_idle": 0}

names = st.sampled_from(["a", "b"])
sizes = st.integers(0, 4000).map(lambda blocks: blocks * 4096 / MIB)
times = st.integers(0, 400 * DAY)
costs = st.sampled_from(Cost)


def first_of_two(one, other):
    """Which of two entries goes when one has to; they need not be of one size."""
    place = location([one, other], limits=size(0, 0), **CHEAPEST)
    both = gone(place)
    return both[0] if len(both) == 2 else None


def score(one):
    return cheapness(one, one.own_bytes, NOW)


@given(names, sizes.filter(bool), costs, times, st.integers(1, 400 * DAY))
def test_older_is_never_worse_than_younger(name, mib, cost, idle, more):
    """Whatever their names: all else equal, the time since the last use decides."""
    old, young = [entry(each, mib, idle=idle, age=0, cost=cost) for each in (name, "ab".replace(name, ""))]
    old = replace(old, last_use_ns=old.last_use_ns - more)
    assert first_of_two(young, old) == name


@given(names, sizes.filter(bool), st.permutations(list(Cost)), times)
def test_the_dearer_never_goes_before_the_cheaper(name, mib, two, idle):
    """Also when both were used at this very moment."""
    cheap, dear = sorted(two[:2], key=lambda cost: cost.rank)
    one = entry(name, mib, idle=idle, cost=cheap)
    other = entry("ab".replace(name, ""), mib, idle=idle, cost=dear)
    assert first_of_two(other, one) == name


@given(names, sizes, costs, times, st.integers(1, 4000))
def test_the_bigger_goes_first(name, mib, cost, idle, more):
    """All else equal, it wins more for the same miss; an empty one may stay altogether."""
    big = entry(name, mib + more * 4096 / MIB, idle=idle, cost=cost)
    small = entry("ab".replace(name, ""), mib, idle=idle, cost=cost)
    place = location([small, big], limits=size(mib + 0.001, mib), **CHEAPEST)
    assert gone(place) == [name]
    assert score(big) > score(small)


@given(sizes, costs, times, costs, times)
def test_what_is_stale_goes_before_whatever_is_not(mib, cost, idle, other_cost, other_idle):
    """In hours in which only a hard limit acts, too, when nothing expires."""
    stale = entry("stale", 1, idle=other_idle, cost=other_cost, stale=True)
    other = entry("other", mib, idle=idle, cost=cost)
    assert score(stale) > score(other)
    held = Circumstances(quiet=True)
    place = location([other, stale], limits=size(None, hard=mib), circumstances=held, **CHEAPEST)
    assert gone(place) == ["stale"]


@given(st.lists(st.tuples(sizes, costs, times, st.booleans()), max_size=8))
def test_the_order_is_total_and_has_no_cycles(several):
    """The plan goes down by score; the score decides between any two."""
    entries = [
        entry(f"e{number}", mib, idle=idle, cost=cost, stale=stale, own_bytes=int(mib * MIB))
        for number, (mib, cost, idle, stale) in enumerate(several)
    ]
    place = location(entries, limits=replace(size(0, 0), max_entries=0), **CHEAPEST)
    by_name = {each.name.decode(): each for each in entries}
    scores = [score(by_name[name]) for name in gone(place)]
    assert scores == sorted(scores, reverse=True)


def test_each_class_of_cost_weighs_more_than_the_one_before():
    assert [WEIGHTS[cost] for cost in Cost] == sorted(set(WEIGHTS.values()))


def test_of_shared_data_each_wins_its_part_whoever_comes_first_by_name():
    """`bytes` has all of it at the first by name; what is won does not depend on names."""
    shared = Share((0, 1), 8 * MIB, 1)
    users = [sharing("a", 8, (0,), idle=2 * DAY), sharing("z", 0, (0,), idle=2 * DAY)]
    alone = entry("m", 5, idle=2 * DAY)
    place = location([*users, alone], shares=(shared,), limits=size(12, 0), **CHEAPEST)
    assert gone(place) == ["m", "a", "z"]


def test_data_that_stays_in_any_case_wins_nothing():
    shared = Share((0,), 8 * MIB, 1, kept=True)
    keeper = replace(sharing("a", 8, (0,), idle=9 * DAY), own_bytes=MIB)
    place = location([keeper, entry("b", 2, idle=9 * DAY)], shares=(shared,), limits=size(10, 9), **CHEAPEST)
    assert gone(place) == ["b"]


@pytest.mark.parametrize("order", Order)
def test_what_nobody_can_use_goes_before_what_nobody_used_in_every_order(order):
    """So that a brake that cuts the end off keeps what was merely idle."""
    entries = [entry("idle", 9, idle=90 * DAY, cost=Cost.DERIVED), entry("fresh", idle=2 * HOUR)]
    entries += [entry("stale", idle=2 * DAY, stale=True), entry("partial", idle=3 * DAY, partial=True)]
    place = location(entries, max_idle=60 * DAY, order=order)
    assert gone(place)[2:] == ["idle"]
    assert reasons(place) == {
        "idle": EvictReason.IDLE,
        "stale": EvictReason.STALE,
        "partial": EvictReason.PARTIAL,
        "fresh": KeepReason.WITHIN_LIMITS,
    }


def _table(heading):
    """The rows of the guide's table whose first titles are these, without formatting."""
    with open(GUIDE, encoding="utf-8") as file:
        lines = file.read().split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith(heading)) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    raise AssertionError("the page ends in its table")


def test_the_guide_shows_the_weights_that_are_in_force():
    rows = _table("| cost | a miss means | weight |")
    assert {Cost(cost): int(weight) for cost, _, weight in rows} == WEIGHTS


def test_the_example_of_the_guide_is_what_the_planner_does():
    """Scores and places of its table."""
    entries, scores, places = [], [], []
    for name, wins, unused, cost, told, place in _table("| entry | wins | unused for |"):
        mib, days = int(wins.removesuffix(" GiB")) * 1024, int(unused.removesuffix(" d"))
        entries.append(entry(name, mib, idle=days * DAY, cost=Cost(cost), stale=told == "stale"))
        scores.append(told)
        places.append((int(re.match(r"\d+", place)[0]), name))
    goes = gone(location(entries, limits=size(1024, 0), **CHEAPEST))
    assert goes == [name for _, name in sorted(places)]
    assert len(goes) == 5
    for one, told in zip(entries, scores, strict=True):
        if told != "stale":
            factors = [int(number) for number in re.findall(r"\d+", told)]
            won, days, weight, result = factors
            assert won * days / weight == result
            assert (won, days, weight) == (one.bytes >> 30, (NOW - one.last_use_ns) // DAY, WEIGHTS[one.cost])
            assert score(one) // (DAY * 1024 * MIB) == result * max(WEIGHTS.values())
    by_age = gone(location([replace(each, stale=False) for each in entries], limits=size(1024, 0)))
    assert by_age[0] == places[-1][1]
