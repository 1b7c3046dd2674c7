"""Pools and filesystems: what shares a limit is ranked together, and what went before is credited."""

from fractions import Fraction

import pytest

from cachewarden_policies.planning import make_plan
from cachewarden_policies.policy import DAY, MINUTE, Amount, Floor, Limits, Order, Policy
from cachewarden_policies.reasons import EvictReason, KeepReason, LastUseSource
from cachewarden_policies.situation import Circumstances, Entry, Filesystem, Location, Pool, Share, Situation
from cachewarden_policies.verdicts import ScopePlan

NOW = 20_000 * DAY
MIB = 1024 * 1024


def entry(name, mib=1, *, days=1.0, files=1, disk=None, shares=(), own=None, veto=None, ago=None):
    """`disk`: what the disk gets back; `own`: what is not in shares. In MiB, default all."""
    size = int(mib * MIB)
    mine = size if own is None else own * MIB
    use = NOW - (int(days * DAY) if ago is None else ago)
    back = mine if disk is None else disk * MIB
    source = LastUseSource.STAMPS
    return Entry(
        name.encode(), size, files, mine, files, back, files, use, source, use, use, veto=veto, shares=shares
    )


def location(key, *entries, shares=(), circumstances=None, **policy):
    size = sum(e.own_bytes for e in entries) + sum(s.bytes for s in shares)
    policy = Policy(**{"max_share": Fraction(1), **policy})
    return Location(key, policy, size, 0, entries, shares, circumstances or Circumstances())


def at_most(limit, target, hard=None):
    return Limits(limit * MIB, Amount(absolute=target * MIB), None if hard is None else hard * MIB)


def disk(*members, avail, size=100, inodes=(0, 0), **more):
    total, free = inodes
    return Filesystem("/", size * MIB, int(avail * MIB), total, free, members, **more)


def plan_of(*locations, pools=(), filesystems=()):
    return make_plan(Situation(NOW, locations, pools, filesystems))


def gone(plan, *locations):
    entries = {place.key: place.entries for place in locations}
    return [entries[v.location][v.index].name.decode() for v in plan.evictions]


def free(amount):
    return Amount(absolute=int(amount * MIB))


def test_a_pool_ranks_its_members_together():
    a = location("a", entry("a1", days=9), entry("a2", days=7))
    b = location("b", entry("b1", days=8), entry("b2", days=6))
    plan = plan_of(a, b, pools=[Pool("homes", at_most(3, 1), ("a", "b"))])
    assert gone(plan, a, b) == ["a1", "b1", "a2"]
    assert {(v.reason, v.scope) for v in plan.evictions} == {(EvictReason.OVER_POOL_SIZE, "pool:homes")}
    assert plan.scopes == (ScopePlan("pool:homes", ("a", "b"), need_bytes=3 * MIB),)
    assert plan.of("a").need_bytes == 0
    assert (plan.need_of("a"), plan.shortfall_of("a")) == (3 * MIB, 0)


def test_what_a_location_gives_up_for_itself_lowers_its_pool():
    a = location("a", entry("a1", days=5), entry("a2", days=4), limits=at_most(1, 0))
    b = location("b", entry("b1", days=9), entry("b2", days=8))
    plan = plan_of(a, b, pools=[Pool("homes", at_most(2, 1), ("a", "b"))])
    assert gone(plan, a, b) == ["a1", "a2"]


def test_what_a_pool_made_unnecessary_for_a_location_is_spared():
    """The location alone takes its oldest; the pool then takes a bigger one that is enough for both."""
    a = location("a", entry("small", 1, days=9), entry("big", 10, days=7), limits=at_most(10, 10))
    b = location("b", entry("b1", 1, days=1, veto=KeepReason.IN_USE))
    assert gone(plan_of(a, b), a, b) == ["small"]
    plan = plan_of(a, b, pools=[Pool("homes", at_most(9, 2), ("a", "b"))])
    assert gone(plan, a, b) == ["big"]


def test_soft_guards_yield_above_a_pools_hard_limit():
    a = location("a", entry("a1", ago=9 * MINUTE), entry("a2", ago=8 * MINUTE))
    b = location("b", entry("b1", ago=7 * MINUTE), entry("b2", days=1))
    plan = plan_of(a, b, pools=[Pool("homes", at_most(3, 1, hard=2), ("a", "b"))])
    assert gone(plan, a, b) == ["b2", "a1"]
    assert plan.of("b").blocked == {KeepReason.MIN_IDLE: MIB}


def test_members_that_are_not_there_take_no_part():
    a = location("a", entry("a1"))
    pool, empty = Pool("p", at_most(1, 0), ("a", "late")), Pool("q", at_most(0, 0), ("late",))
    plan = plan_of(a, pools=[pool, empty], filesystems=[disk("late", avail=0)])
    assert not plan.evictions
    assert [scope.need_bytes for scope in plan.scopes] == [0, 0, 0]


def test_free_space_takes_what_frees_the_disk_and_not_what_lives_on_elsewhere():
    """Two names of one file with a third outside gain nothing; the size limit counts them all the same."""
    linked = Share((0, 1), MIB, 1, outside=True)
    names = [entry(name, shares=(0,), own=0, days=9) for name in ("a", "b")]
    full = disk("cache", avail=10)
    by_space = location("cache", *names, entry("c"), shares=(linked,), floor=Floor(min_free=free(11)))
    plan = plan_of(by_space, filesystems=[full])
    assert gone(plan, by_space) == ["c"]
    assert [v.reason for v in plan.of("cache").verdicts][:2] == [KeepReason.NO_GAIN] * 2
    by_size = location("cache", *names, entry("c"), shares=(linked,), limits=at_most(1, 1))
    plan = plan_of(by_size, filesystems=[full])
    assert gone(plan, by_size) == ["a", "b"]
    assert sum(v.disk_gain_bytes for v in plan.evictions) == 0
    assert plan.of("cache").planned_bytes == MIB


def three(**more):
    entries = [entry(f"e{i}", 2, days=9 - i) for i in (1, 2, 3)]
    return location("cache", *entries, **more)


def test_free_space_that_arrives_late_is_credited():
    """statvfs still says low, but what was removed a moment ago covers the need: nothing more goes."""
    cache = three(floor=Floor(min_free=free(11)))
    assert gone(plan_of(cache, filesystems=[disk("cache", avail=10)]), cache) == ["e1"]
    pending = disk("cache", avail=10, pending_bytes=2 * MIB)
    plan = plan_of(cache, filesystems=[pending])
    assert not plan.evictions
    assert plan.scopes[0].need_bytes == 0


def test_free_space_equal_to_the_floor_is_enough():
    cache = three(floor=Floor(min_free=free(10)))
    assert not plan_of(cache, filesystems=[disk("cache", avail=10)]).evictions


def test_eviction_for_free_space_goes_on_to_target_free():
    cache = three(floor=Floor(min_free=free(10), target_free=free(13)))
    assert not plan_of(cache, filesystems=[disk("cache", avail=10)]).evictions
    plan = plan_of(cache, filesystems=[disk("cache", avail=9)])
    assert gone(plan, cache) == ["e1", "e2"]
    assert {(v.reason, v.scope) for v in plan.evictions} == {(EvictReason.LOW_FREE_SPACE, "filesystem:/")}


def test_the_strictest_floor_counts_and_victims_of_all_locations_are_ranked_together():
    a = location("a", entry("a1", 2, days=9), floor=Floor(min_free=Amount(share=Fraction(1, 10))))
    b = location("b", entry("b1", 2, days=8), entry("b2", 2, days=1), floor=Floor(min_free=free(13)))
    c = location("c", entry("c1", 2, days=99))
    plan = plan_of(a, b, c, filesystems=[disk("a", "b", avail=9)])
    assert gone(plan, a, b, c) == ["a1", "b1"]
    assert plan.scopes == (ScopePlan("filesystem:/", ("a", "b"), need_bytes=4 * MIB),)


def test_what_locations_give_up_for_themselves_raises_free_space():
    cache = three(floor=Floor(min_free=free(11)), limits=at_most(5, 4))
    plan = plan_of(cache, filesystems=[disk("cache", avail=10)])
    assert gone(plan, cache) == ["e1"]
    assert plan.evictions[0].reason is EvictReason.OVER_SIZE


def test_a_floor_of_inodes_takes_many_tiny_files_and_not_the_one_big():
    cache = location(
        "cache",
        entry("big", 50, files=1, days=9),
        entry("tiny", 1, files=900, days=8),
        floor=Floor(min_free_files=Amount(share=Fraction(1, 2))),
    )
    plan = plan_of(cache, filesystems=[disk("cache", avail=1, inodes=(1000, 100))])
    assert gone(plan, cache) == ["tiny"]
    assert plan.evictions[0].reason is EvictReason.LOW_FREE_FILES
    assert plan.scopes == (ScopePlan("filesystem:/", ("cache",), need_files=400),)


def test_a_filesystem_without_a_fixed_number_of_inodes_has_no_floor_of_them():
    cache = three(floor=Floor(min_free_files=Amount(absolute=1000)))
    assert not plan_of(cache, filesystems=[disk("cache", avail=1, inodes=(0, 0))]).evictions


def test_soft_guards_yield_below_hard_min_free_only_and_only_as_far():
    entries = [entry(f"e{i}", 2, ago=(9 - i) * MINUTE) for i in range(3)]
    soft = location("cache", *entries, floor=Floor(min_free=free(20)))
    assert not plan_of(soft, filesystems=[disk("cache", avail=9)]).evictions
    hard = location("cache", *entries, floor=Floor(min_free=free(20), hard_min_free=free(11)))
    plan = plan_of(hard, filesystems=[disk("cache", avail=9)])
    assert gone(plan, hard) == ["e0"]
    assert plan.scopes[0].shortfall_bytes == 9 * MIB
    assert plan.of("cache").blocked == {KeepReason.MIN_IDLE: 4 * MIB}


def test_what_somebody_asked_to_be_free_is_freed_beside_the_floors():
    cache = three(floor=Floor(min_free=free(5)))
    plan = plan_of(cache, filesystems=[disk("cache", avail=10, requested_free=13 * MIB)])
    assert gone(plan, cache) == ["e1", "e2"]
    assert {v.reason for v in plan.evictions} == {EvictReason.REQUESTED}


def test_free_space_never_takes_a_location_below_its_min_size():
    a = location("a", entry("big", 3, days=9), entry("a1", 1, days=8), min_size=2 * MIB)
    b = location("b", entry("b1", 2, days=2), floor=Floor(min_free=free(20), hard_min_free=free(20)))
    plan = plan_of(a, b, filesystems=[disk("a", "b", avail=10)])
    assert gone(plan, a, b) == ["a1", "b1"]
    assert plan.of("a").verdicts[0].reason is KeepReason.PROTECTED
    assert plan.of("a").blocked == {KeepReason.PROTECTED: 3 * MIB}


@pytest.mark.parametrize(("min_size", "expected"), [(2, ["x", "y"]), (3, [])])
def test_a_group_counts_as_one_against_min_size(min_size, expected):
    shares = (Share((0, 1), 2 * MIB, 1), Share((0, 1), 1 * MIB, 1))
    pair = [entry(name, 3, own=0, shares=(0, 1), files=0) for name in ("x", "y")]
    kept = entry("z", 2, veto=KeepReason.IN_USE)
    cache = location(
        "cache", *pair, kept, shares=shares, min_size=min_size * MIB, floor=Floor(min_free=free(11))
    )
    assert gone(plan_of(cache, filesystems=[disk("cache", avail=10)]), cache) == expected


def test_locations_whose_orders_differ_are_ranked_by_last_use():
    a = location("a", entry("a1", 5, days=1), order=Order.LARGEST)
    b = location("b", entry("b1", 1, days=9), order=Order.LRU)
    pool = Pool("p", at_most(5, 5), ("a", "b"))
    assert gone(plan_of(a, b, pools=[pool]), a, b) == ["b1"]
    largest = location("b", entry("b1", 1, days=9), order=Order.LARGEST)
    assert gone(plan_of(a, largest, pools=[pool]), a, largest) == ["a1"]


def test_a_location_that_learns_is_held_back_where_others_make_last_use_the_order():
    held = Circumstances(learning=True)
    a = location("a", entry("a1", days=9), order=Order.OLDEST, circumstances=held)
    pools = [Pool("p", at_most(1, 1), ("a", "b"))]
    b = location("b", entry("b1", days=1), order=Order.LRU)
    plan = plan_of(a, b, pools=pools)
    assert gone(plan, a, b) == ["b1"]
    assert plan.of("a").verdicts[0].reason is KeepReason.LEARNING
    oldest = location("b", entry("b1", days=1), order=Order.OLDEST)
    assert gone(plan_of(a, oldest, pools=pools), a, oldest) == ["a1"]


def test_ties_across_locations_go_to_the_name_and_then_to_the_location():
    a, b = location("a", entry("y"), entry("x")), location("b", entry("x"))
    plan = plan_of(b, a, pools=[Pool("p", at_most(2, 0), ("b", "a"))])
    assert [(v.location, v.index) for v in plan.evictions] == [("a", 1), ("b", 0), ("a", 0)]


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        (Circumstances(enforce=False), KeepReason.NOT_ENFORCED),
        (Circumstances(waiting=True), KeepReason.CONFIRMATION),
        (Circumstances(quiet=True), KeepReason.QUIET_HOURS),
        (Circumstances(learning=True), KeepReason.LEARNING),
    ],
)
def test_a_location_that_is_held_back_does_not_let_the_disk_run_full(held, reason):
    a = location("a", entry("a1", 2, days=9), circumstances=held, floor=Floor(min_free=free(11)))
    b = location("b", entry("b1", 2, days=1))
    plan = plan_of(a, b, filesystems=[disk("a", "b", avail=10)])
    assert gone(plan, a, b) == ["b1"]
    assert plan.of("a").verdicts[0].reason is reason
    assert plan.of("a").brake is (reason is KeepReason.CONFIRMATION)


def test_when_the_brake_cuts_one_location_the_others_choose_again():
    a = location(
        "a",
        *(entry(f"a{i}", days=30 - i) for i in range(6)),
        max_share=Fraction(1, 2),
        floor=Floor(min_free=free(14)),
    )
    b = location("b", *(entry(f"b{i}", days=9 - i) for i in range(4)))
    plan = plan_of(a, b, filesystems=[disk("a", "b", avail=10)])
    assert gone(plan, a, b) == ["a0", "a1", "a2", "b0"]
    assert plan.of("a").verdicts[3].reason is KeepReason.CONFIRMATION
    assert plan.of("a").verdicts[4].reason is KeepReason.WITHIN_LIMITS
    assert (plan.of("a").brake, plan.of("b").brake) == (True, False)


def test_ranks_run_over_expiry_then_locations_then_pools_then_filesystems():
    a = location("a", entry("idle", days=50), entry("a1", days=3), entry("a2", days=2), max_idle=40 * DAY)
    b = location("b", entry("b1", days=9), entry("b2", days=8), limits=at_most(1, 1))
    plan = plan_of(
        a,
        b,
        pools=[Pool("p", at_most(2, 2), ("a", "b"))],
        filesystems=[disk("a", "b", avail=10, requested_free=14 * MIB)],
    )
    assert gone(plan, a, b) == ["idle", "b1", "b2", "a1"]
    assert [v.rank for v in plan.evictions] == [0, 1, 2, 3]
    assert [v.scope for v in plan.evictions] == ["a", "b", "pool:p", "filesystem:/"]
