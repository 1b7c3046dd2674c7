"""What holds for every plan: guards, minimality, order, the brake, one verdict for each entry."""

from dataclasses import replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from cachewarden_policies.planning import make_plan
from cachewarden_policies.policy import DAY, HOUR, Amount, Floor, Limits, Order, Policy
from cachewarden_policies.progress import advance
from cachewarden_policies.reasons import Cost, EvictReason, KeepReason, LastUseSource
from cachewarden_policies.situation import Circumstances, Entry, Filesystem, Location, Pool, Share, Situation

NOW = 1000 * DAY
VETOES = [None, None, None, KeepReason.IN_USE, KeepReason.PINNED]

small = st.integers(0, 9)
moments = st.integers(NOW - 60 * DAY, NOW + DAY) | st.sampled_from([NOW - DAY, NOW - 2 * HOUR, NOW])
limits = st.builds(
    Limits,
    max_size=st.none() | st.integers(1, 60),
    target_size=st.builds(Amount, share=st.sampled_from([Fraction(1, 2), Fraction(9, 10), Fraction(1)])),
    hard_max_size=st.none() | st.integers(1, 80),
    max_files=st.none() | st.integers(1, 30),
    max_entries=st.none() | st.integers(1, 8),
)
floors = st.builds(Floor, st.none() | st.builds(Amount, absolute=st.integers(0, 40)))
policies = st.builds(
    Policy,
    limits=limits,
    floor=floors,
    max_idle=st.none() | st.just(30 * DAY),
    max_age=st.none() | st.just(50 * DAY),
    order=st.sampled_from(Order),
    min_idle=st.sampled_from([0, HOUR, DAY]),
    keep_newest=st.integers(0, 2),
    max_share=st.sampled_from([Fraction(1, 10), Fraction(1, 2), Fraction(1)]),
    min_size=st.sampled_from([0, 0, 10]),
)
circumstances = st.just(Circumstances()) | st.builds(
    Circumstances,
    enforce=st.booleans(),
    quiet=st.booleans(),
    learning=st.booleans(),
    clock_suspect=st.booleans(),
    waiting=st.booleans(),
    confirmed=st.booleans(),
)


@st.composite
def locations(draw, key="a", policy=policies, circumstances=circumstances, max_shares=4):
    count = draw(st.integers(0, 9))
    shares = []
    if count > 1:
        owners = st.sets(st.integers(0, count - 1), min_size=1, max_size=4).map(lambda s: tuple(sorted(s)))
        one = st.builds(
            Share, owners, small, small, outside=st.booleans(), kept=st.sampled_from([False] * 4 + [True])
        )
        shares = draw(st.lists(one, max_size=max_shares))
    entries = [draw(_entry(index, shares)) for index in range(count)]
    usage = (
        sum(e.own_bytes for e in entries) + sum(s.bytes for s in shares) + draw(st.sampled_from([0, 0, 7]))
    )
    files = sum(e.own_files for e in entries) + sum(s.files for s in shares)
    return Location(key, draw(policy), usage, files, tuple(entries), tuple(shares), draw(circumstances))


@st.composite
def _entry(draw, index, shares):
    own, files = draw(small), draw(small)
    mine = tuple(number for number, share in enumerate(shares) if index in share.owners)
    return Entry(
        name=b"%c%d" % (draw(st.sampled_from(b"xyz")), index),
        bytes=own + sum(shares[number].bytes for number in mine),
        files=files,
        own_bytes=own,
        own_files=files,
        disk_bytes=draw(st.sampled_from([own, 0])),
        disk_inodes=files,
        last_use_ns=draw(moments),
        last_use_source=LastUseSource.STAMPS,
        changed_ns=draw(moments),
        first_seen_ns=draw(moments),
        cost=draw(st.sampled_from(Cost)),
        partial=draw(st.sampled_from([False] * 5 + [True])),
        stale=draw(st.sampled_from([False] * 5 + [True])),
        veto=draw(st.sampled_from(VETOES)),
        shares=mine,
    )


@st.composite
def situations(draw, **more):
    a, b = draw(locations("a", **more)), draw(locations("b", **more))
    pools = [Pool("p", limits, ("a", "b")) for limits in draw(st.lists(limits, max_size=1))]
    disk = Filesystem(
        "/",
        1000,
        draw(st.integers(0, 40)),
        1000,
        900,
        ("a", "b"),
        pending_bytes=draw(st.sampled_from([0, 0, 5])),
        requested_free=draw(st.sampled_from([0, 0, 30])),
    )
    return Situation(NOW, (a, b), tuple(pools), tuple(draw(st.lists(st.just(disk), max_size=1))))


@st.composite
def lone_sizes(draw):
    """One location whose only rule is a size limit, with a target as high as the limit."""
    bound = st.builds(Limits, st.integers(1, 60), st.just(Amount(share=Fraction(1))))
    policy = st.builds(
        Policy,
        limits=bound,
        order=st.sampled_from(Order),
        min_idle=st.just(0),
        max_share=st.just(Fraction(1)),
        partial_max_idle=st.none(),
    )
    place = draw(locations(policy=policy, circumstances=st.just(Circumstances())))
    return replace(place, entries=tuple(replace(e, stale=False) for e in place.entries))


def plan_of(place):
    return make_plan(Situation(NOW, [place])).of("a")


def gain(place, indices):
    gone = set(indices)
    own = sum(place.entries[i].own_bytes for i in gone)
    return own + sum(s.bytes for s in place.shares if not s.kept and set(s.owners) <= gone)


@given(situations())
def test_every_entry_has_exactly_one_verdict_and_ranks_count_from_zero(situation):
    plan = make_plan(situation)
    for place, own in zip(situation.locations, plan.locations, strict=True):
        assert own.location == place.key
        assert [v.index for v in own.verdicts] == list(range(len(place.entries)))
        assert [v for v in own.verdicts if v.evict] == sorted(own.evictions, key=lambda v: v.index)
    assert [v.rank for v in plan.evictions] == list(range(len(plan.evictions)))


@given(situations())
def test_nothing_that_is_vetoed_or_protected_goes(situation):
    places = [replace(place, policy=replace(place.policy, protect=("x*",))) for place in situation.locations]
    for place, own in zip(places, make_plan(replace(situation, locations=places)).locations, strict=True):
        for entry, verdict in zip(place.entries, own.verdicts, strict=True):
            if entry.veto is not None:
                assert verdict.reason is entry.veto
            elif entry.name.startswith(b"x"):
                assert verdict.reason is KeepReason.PROTECTED


@given(situations())
def test_the_gains_of_the_verdicts_are_what_really_goes(situation):
    for place, own in zip(situation.locations, make_plan(situation).locations, strict=True):
        assert own.planned_bytes == gain(place, [v.index for v in own.evictions])


@given(situations(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_makes_no_difference(situation, random):
    def shuffled(place):
        order = list(range(len(place.entries)))
        random.shuffle(order)
        share_order = list(range(len(place.shares)))
        random.shuffle(share_order)
        entries = [
            replace(place.entries[old], shares=tuple(share_order.index(s) for s in place.entries[old].shares))
            for old in order
        ]
        shares = [
            replace(place.shares[old], owners=tuple(order.index(o) for o in place.shares[old].owners))
            for old in share_order
        ]
        return replace(place, entries=entries, shares=shares)

    def told(situation):
        plan = make_plan(situation)
        entries = {place.key: place.entries for place in situation.locations}
        evictions = [(v.location, entries[v.location][v.index].name, v.reason) for v in plan.evictions]
        reasons = {
            (own.location, entries[own.location][v.index].name): v.reason
            for own in plan.locations
            for v in own.verdicts
        }
        return evictions, reasons

    other = replace(situation, locations=[shuffled(place) for place in reversed(situation.locations)])
    assert told(other) == told(situation)


@given(lone_sizes())
def test_a_size_limit_is_met_or_everything_that_may_go_went(place):
    plan = plan_of(place)
    left = place.usage_bytes - plan.planned_bytes
    free = [i for i, entry in enumerate(place.entries) if entry.veto is None]
    if plan.shortfall_bytes:
        assert left == place.usage_bytes - gain(place, free)
    else:
        assert left <= place.policy.limits.max_size
    assert plan.shortfall_bytes == max(left - place.policy.limits.max_size, 0)


@given(situations(circumstances=st.just(Circumstances())))
def test_no_entry_that_was_taken_for_a_limit_could_have_stayed(situation):
    places = [
        replace(p, policy=replace(p.policy, max_share=Fraction(1), min_size=0)) for p in situation.locations
    ]
    situation = replace(situation, locations=places, pools=(), filesystems=())
    expiry = {EvictReason.IDLE, EvictReason.AGED, EvictReason.STALE, EvictReason.PARTIAL}
    for place, own in zip(places, make_plan(situation).locations, strict=True):
        gone = [v.index for v in own.evictions]
        for verdict in own.evictions:
            if verdict.reason not in expiry:
                rest = [index for index in gone if index != verdict.index]
                assert _unmet(place, gone, rest), "it could have stayed"


def _unmet(place, gone, rest):
    """Whether a limit is met worse when only `rest` goes instead of `gone`."""
    limits = place.policy.limits

    def over(indices):
        left = set(range(len(place.entries))) - set(indices)
        size = place.usage_bytes - gain(place, indices)
        shared = [s.files for s in place.shares if not s.kept and not set(s.owners) & left]
        files = place.usage_files - sum(place.entries[i].own_files for i in indices) - sum(shared)
        measures = (
            (limits.max_size, limits.target_size, place.usage_bytes, size),
            (limits.max_files, limits.target_files, place.usage_files, files),
            (limits.max_entries, limits.target_entries, len(place.entries), len(left)),
            (limits.hard_max_size, Amount(share=Fraction(1)), place.usage_bytes, size),
        )
        return [
            max(after - (target.of(limit) if before > limit else limit), 0)
            for limit, target, before, after in measures
            if limit is not None
        ]

    return any(worse > better for worse, better in zip(over(rest), over(gone), strict=True))


@given(lone_sizes(), st.integers(1, 60))
def test_a_lower_limit_never_leaves_more(place, other):
    def left(limit):
        policy = replace(place.policy, limits=replace(place.policy.limits, max_size=limit))
        return place.usage_bytes - plan_of(replace(place, policy=policy)).planned_bytes

    assert left(min(other, place.policy.limits.max_size)) <= left(max(other, place.policy.limits.max_size))


@given(lone_sizes())
def test_never_more_goes_than_is_needed_and_one_entry_or_group(place):
    plan = plan_of(place)
    gone = [v.index for v in plan.evictions]
    losses = [plan.planned_bytes - gain(place, [i for i in gone if i != one]) for one in gone]
    assert plan.planned_bytes - min(losses, default=0) < max(plan.need_bytes, 1)


@given(situations())
def test_no_limits_and_nothing_asked_is_an_empty_plan(situation):
    places = [replace(place, policy=Policy()) for place in situation.locations]
    disks = [replace(disk, requested_free=0) for disk in situation.filesystems]
    plan = make_plan(Situation(NOW, places, (), disks))
    assert plan.evictions == []
    assert not any(own.over_limit or own.brake or own.need_bytes or own.blocked for own in plan.locations)


def _after(situation, plan):
    places, freed = [], 0
    for place, own in zip(situation.locations, plan.locations, strict=True):
        progress = advance(place, [v.index for v in own.evictions], {})
        places.append(progress.location)
        freed += progress.disk_bytes
    disks = [replace(disk, avail_bytes=disk.avail_bytes + freed) for disk in situation.filesystems]
    return replace(situation, locations=places, filesystems=disks)


@given(situations())
def test_planning_again_after_a_plan_was_carried_out_is_an_empty_plan(situation):
    places = [replace(p, policy=replace(p.policy, max_share=Fraction(1))) for p in situation.locations]
    situation = replace(situation, locations=places)
    after = _after(situation, make_plan(situation))
    assert make_plan(after).evictions == []


@given(situations())
def test_the_brake_lets_no_more_go_than_the_share_or_one_entry(situation):
    for place, own in zip(situation.locations, make_plan(situation).locations, strict=True):
        paid = [v for v in own.evictions if v.gain_bytes]
        if not place.circumstances.confirmed and place.policy.max_share < 1:
            within = own.planned_bytes <= place.policy.max_share * place.usage_bytes
            assert within or len(paid) == 1
        if place.circumstances.waiting and not place.circumstances.confirmed:
            assert not own.evictions
