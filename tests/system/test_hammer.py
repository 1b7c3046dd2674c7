"""The short form of `make soak`: programs load entries in every way while they are evicted and made again."""

import pytest
from tests.soak.hammer import READERS, Plan, hammer
from tests.soak.tables import details
from tests.soak.waits import Waits

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]

SECOND = 1_000_000_000
WAYS = 12


def test_no_load_is_torn_in_three_thousand_evictions():
    report = hammer(Plan(evictions=3000, seconds=200))
    print(details(report))
    assert report.torn == 0
    assert report.count("broken") == 0
    # It was a hammer: evictions came, and readers in every way and from everywhere were in their way.
    assert report.tally.removed >= 3000
    assert report.tally.kept["live_opener"] > 0
    assert report.tally.kept["in_use"] > 0
    assert report.tally.put_back > 0
    assert {where for where, _ in report.loads} == set(READERS)
    assert len(report.loads) == WAYS * len(READERS)
    assert all(whole > 0 for whole, *_ in report.loads.values())
    # Nothing else was harmed: what writers added, what is there at the end, the trash.
    assert report.written["adder"].keys() <= {"done", "nowhere", "away"}
    assert report.torn_entries == []
    assert report.tally.failures == []
    # Nobody waits for long. Medians, because how busy the machine is with other tests is not our doing.
    assert report.tally.leased.quantile(0.5) < SECOND
    assert report.first.quantile(0.5) < SECOND // 1000


@pytest.mark.parametrize("engine", ["leases alone", "look, then delete"])
def test_what_others_do_tears_loads_so_that_the_hammer_can_see_it(engine):
    plan = Plan(
        engine=engine, evictions=100_000, seconds=120, until_torn=True, entries=16, making=0.02, rest=0.1
    )
    report = hammer(plan)
    print(details(report))
    assert report.torn > 0


class TestWaits:
    """Times are counted in slots of an eighth of a power of two."""

    def test_a_quantile_is_rounded_up_by_an_eighth_at_most(self):
        waits = Waits()
        for ns in range(1, 10_001):
            waits.add(ns)
        for share in (0.01, 0.5, 0.99):
            assert share * 10_000 <= waits.quantile(share) <= share * 10_000 * 1.125 + 1
        assert waits.quantile(1) == waits.longest == 10_000

    def test_what_another_process_counted_is_added(self):
        mine, other = Waits(), Waits()
        mine.add(5)
        other.add(5_000_000)
        mine.take_in(other.as_told())
        assert (mine.count, mine.longest) == (2, 5_000_000)
