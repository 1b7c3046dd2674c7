"""A split that goes on from what was found out before is the split that somebody makes who knows nothing."""

import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.daemon.test_scan_remembered import SETTLED, UNSETTLED, Place, act, numbers

from cachewarden.enforce.asked import AskedTime
from cachewarden.enforce.dividing import Demand, divide
from cachewarden.scan import changes, facts_of, remember
from cachewarden_policies.policy import DAY

# What layouts look for, at every depth.
NAMES = """
a b .nfs01 checkpoint_1 checkpoints optimizer.bin index.json w.dat config.yaml models--o--n blobs refs
snapshots hub datasets x.incomplete state.json dataset_info.json fxgraph
"""
names = st.sampled_from(NAMES.split())
steps = st.one_of(
    st.tuples(st.just("file"), numbers, names),
    st.tuples(st.just("directory"), numbers, names),
    st.tuples(st.just("directory"), numbers, names),
    st.tuples(st.just("symlink"), numbers, names),
    st.tuples(st.just("remove"), numbers),
    st.tuples(st.just("move"), numbers, numbers, names),
)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    built=st.lists(steps, min_size=5, max_size=30),
    rounds=st.lists(st.lists(steps, min_size=1, max_size=4), min_size=1, max_size=3),
    settled=st.booleans(),
    layout=st.sampled_from(["plain", "accelerate", "auto", "hub"]),
)
def test_whatever_changes_a_split_is_what_it_would_be(tmp_path_factory, built, rounds, settled, layout):
    place = Place(tmp_path_factory.mktemp("any") / "place")
    for step in built:
        act(place, step)
    settled_ns, demand = SETTLED if settled else UNSETTLED, Demand(layout, DAY, None)
    fd = os.open(place.root, os.O_RDONLY)
    try:
        divided = divide(fd, demand, time.time_ns())
        for changes_of_a_round in rounds:
            known = remember(fd, divided.split, facts_of(fd, (), None), settled_ns)
            place.dirty.clear()
            time.sleep(0.01)
            for step in changes_of_a_round:
                act(place, step)
            now_ns = time.time_ns()
            divided = divide(fd, demand, now_ns, divided, changes(known, fd, place.dirty))
            assert divided.split == divide(fd, demand, now_ns).split
    finally:
        os.close(fd)


def test_parts_in_which_nothing_changed_are_not_looked_at_again(tmp_path):
    place = Place(tmp_path / "place")
    for name in ("a", "b"):
        (place.root / name).mkdir()
    fd = os.open(place.root, os.O_RDONLY)
    try:
        first = divide(fd, Demand("plain", DAY, None), 0)
        known = remember(fd, first.split, facts_of(fd, (), None), SETTLED)
        time.sleep(0.01)
        (place.root / "b" / ".nfs00").touch()
        place.tell(place.root / "b" / ".nfs00")
        again = divide(fd, Demand("plain", DAY, None), 0, first, changes(known, fd, place.dirty))
        assert again.split.claims[0] is first.split.claims[0]
        assert again.split.claims[1] != first.split.claims[1]
    finally:
        os.close(fd)


def test_a_directory_in_the_place_of_another_is_looked_at_whoever_tells_only_of_its_parent(tmp_path):
    place = Place(tmp_path / "place")
    (place.root / "a").mkdir()
    (place.outside / "b").mkdir()
    (place.outside / "b" / ".nfs00").touch()
    fd = os.open(place.root, os.O_RDONLY)
    try:
        first = divide(fd, Demand("plain", DAY, None), 0)
        known = remember(fd, first.split, facts_of(fd, (), None), SETTLED)
        (place.root / "a").rmdir()
        (place.outside / "b").rename(place.root / "a")
        again = divide(fd, Demand("plain", DAY, None), 0, first, changes(known, fd, {b""}))
        assert again.split.claims != first.split.claims
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    "use",
    [
        lambda now: now - 1,
        lambda now: 1 - now,
        lambda now: now + 1,
        lambda now: 1 + now,
        lambda now: now < 1,
        lambda now: now <= 1,
        lambda now: now > 1,
        lambda now: now >= 1,
        lambda now: max(1, now),
    ],
)
def test_a_time_knows_that_it_was_asked(use):
    now = AskedTime(10**18)
    assert use(now) == use(10**18)
    assert now.asked


def test_a_time_that_nobody_calculates_with_was_not_asked():
    now = AskedTime(5)
    assert not AskedTime(5).asked
    assert (now == 5, now.asked) == (True, 0)
