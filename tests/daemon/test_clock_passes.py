"""Passes under a wall clock that jumps: nothing ages out, nothing that ends at a time ends by the jump."""

import os
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.daemon.passes import DAY, MIB, Field, limit, policy

from cachewarden.enforce.clockwatch import ClockWatch
from cachewarden.enforce.enforcer import Enforcer
from cachewarden.ledger import Pin
from cachewarden_policies.policy import HOUR, MINUTE, Limits
from cachewarden_policies.reasons import EvictReason, KeepReason, Outcome

YEAR = 365 * DAY
INTERVAL = 5 * MINUTE


class Watched(Field):
    """A location whose passes doubt the clock. `at` is called between the steps of evictions."""

    at = None

    def open(self):
        super().open()
        watch = ClockWatch(INTERVAL, os.fsencode(self.base / "run"))
        more = {"at": self.at} if self.at is not None else {}
        self.enforcer = Enforcer(replace(self.enforcer.means, clock_watch=watch, **more))


@pytest.fixture
def field(tmp_path):
    """An empty location."""
    return Watched(tmp_path)


def evicted(report):
    return sorted(os.fsdecode(each.entry) for each in report.evicted)


def reasons(report):
    return {os.fsdecode(each.entry): each.reason for each in report.spared}


RULES = {"max_idle": 30 * DAY, "max_age": 90 * DAY}


@pytest.mark.parametrize("restart", [False, True])
def test_a_year_ahead_ages_nothing_out_and_when_the_clock_stays_there_it_counts(field, restart):
    field.entry("young", days=0)
    field.entry("old", days=20)
    assert evicted(field.run(policy(**RULES))) == []
    field.clock.step(YEAR)
    if restart:
        field.restart()
    report = field.run(policy(**RULES))
    assert evicted(report) == []
    assert any("jumped ahead" in notice for notice in field.heard.notices)
    field.clock.advance(INTERVAL - MINUTE)
    assert evicted(field.run(policy(**RULES))) == []
    field.clock.advance(MINUTE)
    assert evicted(field.run(policy(**RULES))) == ["old", "young"]


@pytest.mark.parametrize("jump", [2 * HOUR, YEAR, -2 * HOUR])
def test_size_limits_act_in_the_usual_order_while_the_clock_is_doubted(field, jump):
    for days in (9, 5, 1):
        field.entry(f"{days}d", days=days)
    field.run(policy())
    field.clock.step(jump)
    report = field.run(policy(limits=limit(2)))
    assert [os.fsdecode(each.entry) for each in report.evicted] == ["9d"]
    assert report.evicted[0].reason is EvictReason.OVER_SIZE


@pytest.mark.parametrize("jump", [-2 * HOUR, -YEAR])
def test_a_clock_that_was_set_back_neither_stalls_passes_nor_ages_anything(field, jump):
    field.entry("e", days=0)
    field.run(policy(**RULES))
    field.clock.step(jump)
    for _ in range(3):
        report = field.run(policy(**RULES))
        assert (report.outcome, evicted(report)) == (Outcome.WITHIN_LIMITS, [])
        field.clock.advance(INTERVAL)
    state = field.ledger.location_state(field.spec(policy()).key)
    assert state.last_pass_ns == field.clock.wall_ns() - INTERVAL
    field.clock.advance(31 * DAY)
    assert evicted(field.run(policy(**RULES))) == ["e"], "and it is not young for ever either"


def test_what_came_while_the_clock_was_ahead_is_not_the_youngest_for_a_year(field):
    """Also if its stamps are old: an archive that was unpacked then."""
    field.run(policy())
    field.clock.step(YEAR)
    field.clock.advance(INTERVAL)
    field.run(policy())
    field.entry("unpacked", days=4000)
    spec = field.spec(policy())
    field.run(policy())
    field.clock.step(-YEAR)
    for _ in range(2):
        assert evicted(field.run(policy(**RULES))) == []
        assert field.ledger.records(spec.key)[b"unpacked"].first_seen_ns > field.clock.wall_ns() + 9 * DAY
    field.clock.advance(INTERVAL)
    assert evicted(field.run(policy(**RULES))) == []
    assert field.ledger.records(spec.key)[b"unpacked"].first_seen_ns == field.clock.wall_ns()
    assert any("lay ahead of the clock" in notice for notice in field.heard.notices)
    field.clock.advance(31 * DAY)
    assert evicted(field.run(policy(**RULES))) == ["unpacked"]


def test_a_clock_that_is_a_year_behind_for_a_moment_makes_nothing_a_year_old(field):
    field.entry("there", days=0)
    field.run(policy())
    field.entry("came", days=4000)
    field.run(policy())
    born = field.ledger.records(field.spec(policy()).key)[b"came"].first_seen_ns
    field.clock.step(-YEAR)
    field.run(policy(**RULES))
    field.clock.step(YEAR)
    field.run(policy(**RULES))
    field.clock.advance(INTERVAL)
    assert evicted(field.run(policy(**RULES))) == []
    assert field.ledger.records(field.spec(policy()).key)[b"came"].first_seen_ns == born


def test_a_pin_with_an_end_does_not_end_by_a_jump(field):
    path = field.entry("e")
    now = field.clock.wall_ns()
    field.pins.add(Pin(os.fsencode(path), now, now + 7 * DAY), now)
    everything = policy(evict_all=True)
    assert reasons(field.run(everything)) == {"e": KeepReason.PINNED}
    field.clock.step(YEAR)
    assert reasons(field.run(everything)) == {"e": KeepReason.PINNED}
    field.clock.step(-YEAR)
    assert reasons(field.run(everything)) == {"e": KeepReason.PINNED}
    field.clock.advance(8 * DAY)
    assert evicted(field.run(everything)) == ["e"]


def test_a_pause_does_not_end_by_a_jump(field):
    field.entry("e")
    field.run(policy())
    field.ledger.pause(None, field.clock.wall_ns(), field.clock.wall_ns() + HOUR)
    field.clock.step(YEAR)
    assert evicted(field.run(policy(evict_all=True))) == []
    field.clock.advance(INTERVAL)
    assert evicted(field.run(policy(evict_all=True))) == ["e"]


def test_what_was_used_a_moment_ago_is_guarded_after_a_jump_too(field):
    field.entry("now", days=0)
    rules = policy(limits=Limits(max_size=1), min_idle=HOUR)
    assert reasons(field.run(rules)) == {"now": KeepReason.MIN_IDLE}
    field.clock.step(YEAR)
    assert reasons(field.run(rules)) == {"now": KeepReason.MIN_IDLE}
    field.clock.advance(INTERVAL)
    assert evicted(field.run(rules)) == ["now"]


def test_entries_that_other_machines_may_use_do_not_become_idle_by_a_jump(field):
    field.entry("e", days=0)
    shared = {"shared": "yes", "shared_without_agents": "idle"}
    everything = policy(evict_all=True)
    assert reasons(field.run(everything, **shared)) == {"e": KeepReason.OTHER_NODE}
    field.clock.step(YEAR)
    assert reasons(field.run(everything, **shared)) == {"e": KeepReason.OTHER_NODE}


def hub(field, *, partial=False):
    """A repository of one revision, with the soft lock of another host or a partial download an hour old."""
    commit = "a" * 40
    repo = field.root / "models--o--r"
    for name in ("blobs", "refs", f"snapshots/{commit}"):
        (repo / name).mkdir(parents=True)
    (repo / "blobs" / "e1").write_bytes(os.urandom(MIB))
    (repo / "snapshots" / commit / "w").symlink_to("../../blobs/e1")
    (repo / "refs" / "main").write_text(commit)
    locks = field.root / ".locks" / "models--o--r"
    locks.mkdir(parents=True)
    found = repo / "blobs" / "e2.incomplete" if partial else locks / "e1.lock"
    found.write_text("4242\nanother-host\n")
    then = field.clock.wall_ns() - HOUR
    os.utime(found, ns=(then, then))


@pytest.mark.parametrize(
    ("partial", "kept"), [(False, KeepReason.LOCKED), (True, KeepReason.PARTIAL)], ids=["lock", "partial"]
)
def test_neither_locks_of_other_hosts_nor_downloads_are_abandoned_by_a_jump(field, partial, kept):
    hub(field, partial=partial)
    rules = policy(evict_all=True, partial_max_idle=DAY, soft_lock_age=DAY)
    assert reasons(field.run(rules)) == {"models--o--r": kept}
    field.clock.step(YEAR)
    assert reasons(field.run(rules)) == {"models--o--r": kept}
    field.clock.advance(INTERVAL)
    assert evicted(field.run(rules)) != []


def test_a_jump_back_does_not_lengthen_a_confirmation(field):
    for number in range(4):
        field.entry(f"e{number}", days=9 - number)
    braked = policy(limits=limit(1), max_share=Fraction(1, 4))
    assert field.run(braked).outcome is Outcome.WAITING
    spec = field.spec(braked)
    field.ledger.confirm(spec, field.clock.wall_ns() + HOUR, field.clock.wall_ns())
    field.clock.advance(HOUR + MINUTE)
    field.clock.step(-2 * HOUR)
    assert field.run(braked).outcome is Outcome.WAITING


@pytest.mark.parametrize("jump", [YEAR, -YEAR, 2 * HOUR, -2 * HOUR])
def test_a_jump_in_the_middle_of_a_pass_changes_nothing_in_it(tmp_path, jump):
    """Somebody writes into a victim, so that the location is measured a second time, after the jump."""
    steps = []

    def interfere(step):
        if step == "opened" and not steps:
            steps.append(step)
            field.clock.step(jump)
            (field.root / "first" / "more").write_bytes(b"x")
            field.entry("came", days=0)

    field = Watched(tmp_path)
    field.entry("first", days=20)
    field.entry("second", days=10)
    begun = field.clock.wall_ns()
    field.run(policy())
    field.at = interfere
    field.restart()
    report = field.run(policy(limits=limit(1), **RULES))
    assert steps
    assert "second" in evicted(report)
    assert {each.reason for each in report.evicted} == {EvictReason.OVER_SIZE}
    born = field.ledger.records(field.spec(policy()).key)[b"came"].first_seen_ns
    assert 0 <= born - begun < HOUR, "one time for one pass"
