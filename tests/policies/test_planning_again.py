"""A pass that plans again, because a victim turned out to be busy, still stops where it set out to."""

from dataclasses import replace

import pytest
from tests.policies.one_location import MIB, NOW, entry, location, size, ten_entries

from cachewarden_policies.planning import make_plan
from cachewarden_policies.policy import DAY, Amount, Limits
from cachewarden_policies.progress import advance, at_rest, book
from cachewarden_policies.reasons import KeepReason
from cachewarden_policies.situation import Circumstances, Pool, Share, Situation


def begun(place, key="cache"):
    """The location at the start of a pass."""
    start = Circumstances(
        bytes_at_start=place.usage_bytes,
        files_at_start=place.usage_files,
        entries_at_start=len(place.entries),
    )
    return replace(place, key=key, circumstances=start)


def one_round(places, pools, busy):
    """Carry out one plan, where the entries named `busy` cannot go; the locations then, or None."""
    plan = make_plan(Situation(NOW, places, pools))
    if not plan.evictions:
        return None
    after = []
    for place in places:
        mine = plan.of(place.key).evictions
        held = {v.index: KeepReason.IN_USE for v in mine if place.entries[v.index].name in busy}
        scopes = {v.index: v.scope for v in mine if v.index not in held}
        progress = advance(place, scopes, held)
        after.append(replace(progress.location, circumstances=book(place, progress, scopes)))
    return after


def carried_out(places, pools=(), busy=(b"e0",)):
    """Rounds until a plan asks for nothing more; the locations then."""
    while (after := one_round(places, pools, busy)) is not None:
        places = after
    return places


def left(places):
    return [each.name.decode() for place in places for each in place.entries]


def files(limit, target):
    return Limits(max_files=limit, target_files=Amount(absolute=target))


def entries(limit, target):
    return Limits(max_entries=limit, target_entries=Amount(absolute=target))


TO_FOUR = [size(8, 4), files(8, 4), entries(8, 4)]


@pytest.mark.parametrize("limits", TO_FOUR)
def test_a_location_stops_at_its_target_though_a_victim_was_busy(limits):
    done = carried_out([begun(location(ten_entries(), limits=limits))])
    assert left(done) == ["e0", "e7", "e8", "e9"]


@pytest.mark.parametrize("limits", TO_FOUR)
def test_a_pool_stops_at_its_target_though_a_victim_was_busy(limits):
    ten = ten_entries()
    places = [begun(location(ten[:5]), "a"), begun(location(ten[5:]), "b")]
    done = carried_out(places, [Pool("homes", limits, ("a", "b"))])
    assert left(done) == ["e0", "e7", "e8", "e9"]


@pytest.mark.parametrize("limits", TO_FOUR)
def test_what_expired_in_an_earlier_round_sends_no_pool_to_its_target(limits):
    """Three of ten expire, which leaves seven: below eight, so that the pool never asks for anything."""
    places = [begun(location(ten_entries(), max_idle=int(17.5 * DAY)))]
    done = carried_out(places, [Pool("homes", limits, ("cache",))], busy=())
    assert left(done) == [f"e{number}" for number in range(3, 10)]


def test_what_a_pool_took_for_one_limit_sends_it_to_no_target_of_another():
    limits = replace(size(8, 6), max_files=12, target_files=Amount(absolute=1))
    done = carried_out([begun(location(ten_entries()))], [Pool("homes", limits, ("cache",))])
    assert left(done) == ["e0", "e5", "e6", "e7", "e8", "e9"]


def test_what_one_pool_took_counts_for_no_other():
    pools = [Pool("homes", size(8, 7), ("cache",)), Pool("site", size(9, 1), ("cache",))]
    done = carried_out([begun(location(ten_entries()))], pools)
    assert left(done) == ["e0", "e4", "e5", "e6", "e7", "e8", "e9"]


@pytest.mark.parametrize("limits", [files(11, 4), entries(11, 4)])
@pytest.mark.parametrize("joint", [False, True])
def test_what_was_written_since_the_start_makes_no_limit_crossed(limits, joint):
    """Ten at the start, three expired, two came: never more than ten at once, and the limit is eleven."""
    rules = {} if joint else {"limits": limits}
    pools = [Pool("homes", replace(limits, max_size=9 * MIB), ("cache",))] if joint else []
    place = begun(location(ten_entries(), max_idle=int(17.5 * DAY), **rules))
    (place,) = one_round([place], pools, ())
    more = [*place.entries, entry("n0"), entry("n1")]
    place = replace(place, entries=more, usage_bytes=place.usage_bytes + 2 * MIB, usage_files=9)
    assert one_round([place], pools, ()) is None


def test_data_that_victims_of_a_pool_share_counts_for_the_pool_once():
    shared = Share((0, 1), 4 * MIB, 1)
    nothing = {"own_bytes": 0, "own_files": 0, "disk_bytes": 0, "disk_inodes": 0}
    pair = [entry(f"s{i}", 4, idle=(30 - i) * DAY, shares=(0,), **nothing) for i in (0, 1)]
    places = [begun(location([*pair, *ten_entries()], shares=(shared,)))]
    done = carried_out(places, [Pool("homes", size(13, 8), ("cache",))])
    assert left(done) == ["e0", "e3", "e4", "e5", "e6", "e7", "e8", "e9"]
    assert done[0].circumstances.evicted_for["pool:homes"].bytes == 6 * MIB


def test_a_later_pass_begins_anew():
    done = carried_out([begun(location(ten_entries()))], [Pool("homes", size(8, 6), ("cache",))])
    stricter = [Pool("homes", size(8, 1), ("cache",))]
    assert one_round(done, stricter, ()) is not None
    assert one_round([at_rest(place) for place in done], stricter, ()) is None
