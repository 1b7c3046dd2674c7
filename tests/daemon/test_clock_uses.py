"""Last uses under a wall clock that was wrong for a while: the newest counts, and ages like all others."""

import os

import pytest
from tests.daemon.opening import KEY, OPEN_AND_CLOSE, Program, feeding, fill
from tests.daemon.passes import Field, policy

from cachewarden.clock import SetClock
from cachewarden.ledger import Opener, Passing, Use
from cachewarden.openers.lastuses import LastUses, Moment
from cachewarden.openers.processes import Process, Who
from cachewarden_policies.policy import DAY, HOUR, MINUTE
from cachewarden_policies.reasons import LastUseSource

YEAR = 365 * DAY
NOW = 1_700_000_000 * 10**9


@pytest.fixture
def field(tmp_path):
    """An empty location."""
    return Field(tmp_path)


@pytest.mark.parametrize("back", [2 * HOUR, YEAR])
def test_an_open_after_the_clock_was_set_back_is_the_newest(needs_root, tmp_path, back):
    fill(tmp_path, "a/f")
    clock = SetClock(NOW)
    with feeding(tmp_path, clock=clock) as site:
        with Program(OPEN_AND_CLOSE, tmp_path / "a" / "f") as first:
            assert site.pids("a") == {first.pid}
            clock.advance(MINUTE)
            clock.step(-back)
            with Program(OPEN_AND_CLOSE, tmp_path / "a" / "f") as second:
                assert site.pids("a") == {first.pid, second.pid}
                news = site.feed.take_news(KEY).used[b"a"]
        assert (news.ns, news.pid) == (NOW + MINUTE - back, second.pid)


@pytest.mark.parametrize("jump", [-YEAR, YEAR])
def test_a_jump_neither_frees_nor_holds_on_to_live_openers(needs_root, tmp_path, jump):
    fill(tmp_path, "a/f")
    clock = SetClock(NOW)
    with feeding(tmp_path, clock=clock) as site:
        site.index(hold_ns=HOUR)
        with Program(OPEN_AND_CLOSE, tmp_path / "a" / "f"):
            assert site.held() == {"a"}
            clock.step(jump)
            clock.suspend(HOUR - MINUTE)
            assert site.held() == {"a"}
            clock.suspend(MINUTE)
            assert site.held() == set(), "a suspended night counts: the hold is as long as it says"


def test_uses_are_written_between_passes_though_the_clock_was_set_back():
    uses = LastUses()
    uses.note(b"e", Moment(NOW, 1), Who(Process(7, 1), b"x"))
    uses.take_news(every=False)
    uses.note(b"e", Moment(NOW - YEAR, 2), Who(Process(7, 1), b"x"))
    assert uses.take_news(every=False).used[b"e"].ns == NOW - YEAR


def test_times_on_record_that_lie_ahead_are_now_and_all_others_stay(field):
    spec, now = field.spec(policy()), field.clock.wall_ns()
    field.ledger.seen(spec, [(b"ahead", 1), (b"good", 1), (b"soon", 1)], now)
    opener = Opener(7, b"x", 0)
    at = {b"ahead": now + YEAR, b"good": now - DAY, b"soon": now + HOUR}
    uses = {name: Use(ns, LastUseSource.OPENS, opener, "fanotify") for name, ns in at.items()}
    passed = {b"ahead": Passing(now + YEAR, now + YEAR + DAY, 0), b"good": Passing(now - DAY, now + DAY, 0)}
    field.ledger.record_use(spec, uses, now + YEAR, passed)
    assert field.ledger.bring_back(spec.key, now) == 1
    records = field.ledger.records(spec.key)
    assert {name: record.last_use_ns for name, record in records.items()} == {**at, b"ahead": now}
    assert records[b"ahead"].passing is None
    assert records[b"good"].passing == passed[b"good"]
    assert field.ledger.bring_back(spec.key, now) == 0
    field.restart()
    assert field.ledger.records(spec.key)[b"ahead"].last_use_ns == now


def test_what_a_location_remembers_of_itself_comes_back_too(field):
    field.entry("e")
    field.clock.step(YEAR)
    field.run(policy())
    field.clock.step(-YEAR)
    key, now = field.spec(policy()).key, field.clock.wall_ns()
    assert field.ledger.location_state(key).first_scan_ns == now + YEAR
    assert field.ledger.bring_back(key, now) == 2
    assert field.ledger.location_state(key).first_scan_ns == now
    assert os.listdir(field.root) == ["e"]
