"""Every limit, expiry and guard of a policy is said by `explain`, with what it is held against."""

from fractions import Fraction

import pytest

from cachewarden.enforce.wording import limits_in_words
from cachewarden_policies.policy import DAY, HOUR, Amount, Floor, Limits, Policy
from cachewarden_policies.reasons import LastUseSource
from cachewarden_policies.situation import Circumstances, Entry, Filesystem, Location, Pool, Situation

GIB = 1 << 30
SILENT = {"min_idle": 0, "opener_hold": 0, "partial_max_idle": None, "max_share": Fraction(1)}


def entries(count):
    return [
        Entry(b"e%d" % number, 0, 0, 0, 0, 0, 0, 0, LastUseSource.STAMPS, 0, 0) for number in range(count)
    ]


def location(key="a", *, circumstances=None, **policy):
    """A location of 3 GiB in 70 files and two entries, and a policy that says nothing of itself."""
    rules = Policy(**{**SILENT, **policy})
    return Location(key, rules, 3 * GIB, 70, entries(2), (), circumstances or Circumstances())


def words(place, *others, pools=(), inodes=1000):
    disk = Filesystem("/home", 100 * GIB, 30 * GIB, inodes, inodes // 4, ("a",))
    return limits_in_words(place, Situation(0, [place, *others], pools, [disk]))


def test_a_policy_without_anything_says_nothing():
    assert words(location()) == []


LIMITS = Limits(
    max_size=10 * GIB,
    hard_max_size=12 * GIB,
    max_files=100,
    target_files=Amount(absolute=80),
    max_entries=10,
)


def limit_sentences(times):
    return [
        f"max_size 10 GiB, used {3 * times} GiB; above it, down to 9 GiB",
        "hard_max_size 12 GiB; above it, soft guards yield",
        f"max_files 100, there are {70 * times}; above it, down to 80",
        f"max_entries 10, there are {2 * times}; above it, down to 9",
    ]


def test_the_limits_of_a_location_are_held_against_what_it_holds():
    assert words(location(limits=LIMITS)) == limit_sentences(1)


def test_the_limits_of_a_pool_are_held_against_what_its_members_hold_together():
    pools = [Pool("homes", LIMITS, ("a", "b")), Pool("others", LIMITS, ("b", "c"))]
    told = words(location(), location("b"), location("c"), pools=pools)
    assert told == [f"pool homes: {sentence}" for sentence in limit_sentences(2)]


@pytest.mark.parametrize(
    ("floor", "sentence"),
    [
        (Floor(min_free=Amount(share=Fraction(1, 10))), "min_free 10 GiB on /home, where 30 GiB are free"),
        (
            Floor(min_free=Amount(absolute=GIB), target_free=Amount(absolute=2 * GIB)),
            "min_free 1 GiB on /home, where 30 GiB are free; below it, up to 2 GiB",
        ),
        (
            Floor(hard_min_free=Amount(absolute=5 * GIB)),
            "hard_min_free 5 GiB on /home, where 30 GiB are free; below it, soft guards yield",
        ),
        (
            Floor(min_free_files=Amount(share=Fraction(1, 10))),
            "min_free_files 100 on /home, where 250 are free",
        ),
    ],
)
def test_floors_are_held_against_what_is_free(floor, sentence):
    assert words(location(floor=floor)) == [sentence]


def test_a_filesystem_that_makes_inodes_as_it_needs_them_has_no_floor_of_them():
    assert words(location(floor=Floor(min_free_files=Amount(absolute=5))), inodes=0) == []


def test_a_filesystem_of_others_is_not_spoken_of():
    assert words(location("b", floor=Floor(min_free=Amount(absolute=GIB)))) == []


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ({"evict_all": True}, "evict_all: whatever no guard holds goes"),
        ({"max_idle": 30 * DAY}, "max_idle 30 d: unused for longer goes, whatever the size"),
        ({"max_age": 90 * DAY}, "max_age 90 d: older goes, whatever the size"),
        (
            {"partial_max_idle": DAY},
            "partial_max_idle 1 d: a partial download stays so long after its last use, then it goes",
        ),
        ({"min_idle": HOUR}, "min_idle 1 h: used more recently stays, below hard limits"),
        ({"keep_newest": 2}, "keep_newest 2: the most recently used stay, below hard limits"),
        (
            {"opener_hold": 7 * DAY},
            "opener_hold 7 d: what a process opened stays so long while that process runs",
        ),
        (
            {"max_share": Fraction(1, 8)},
            "max_share 12.5%: what one pass wants beyond it waits for confirmation",
        ),
    ],
)
def test_each_key_has_its_sentence(policy, sentence):
    assert words(location(**policy)) == [sentence]


@pytest.mark.parametrize(("learning", "now"), [(True, "it waits now"), (False, "it does not wait now")])
def test_learn_says_whether_it_waits(learning, now):
    place = location(learn=7 * DAY, circumstances=Circumstances(learning=learning))
    assert words(place) == [
        f"learn 7 d: so long nothing goes by last use where access times say nothing; {now}"
    ]
