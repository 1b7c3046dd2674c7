"""What a report says had to go, where a limit is shared with other locations."""

import os

import pytest
from tests.daemon.passes import MIB, Field, Orders, limit, policy

from cachewarden.enforce.reporting import of_plan
from cachewarden.enforce.showing import plan_with_look
from cachewarden.holders import Machine
from cachewarden.spec import PoolSpec, Territory
from cachewarden_policies.policy import Amount, Floor
from cachewarden_policies.reasons import Outcome


@pytest.fixture
def field(tmp_path):
    """A location with three entries of 1 MiB."""
    field = Field(tmp_path)
    for number in range(3):
        field.entry(f"e{number}", days=20 - number)
    return field


def over_a_pool(field, *, enforce):
    spec = field.spec(policy(), enforce=enforce)
    land = Territory((spec,), (PoolSpec("homes", ("root",), limit(2, 1)),))
    return field.enforcer, land, spec


def test_what_a_pool_asks_for_is_the_need_of_its_members(field):
    enforcer, land, spec = over_a_pool(field, enforce=True)
    (report,) = enforcer.run(land, [spec], Orders()).locations
    assert (report.need_bytes, report.shortfall_bytes, report.outcome) == (2 * MIB, 0, Outcome.TRIMMED)


def test_what_a_pool_does_not_get_was_needed(field):
    enforcer, land, spec = over_a_pool(field, enforce=False)
    (report,) = enforcer.run(land, [spec], Orders()).locations
    assert (report.need_bytes, report.shortfall_bytes) == (2 * MIB, 2 * MIB)


def test_what_free_space_asks_for_is_needed_and_short(field):
    space = os.statvfs(field.root)
    wanted = space.f_bavail * space.f_frsize + 100 * MIB
    report = field.run(policy(floor=Floor(min_free=Amount(absolute=wanted))), enforce=False)
    assert report.need_bytes == report.shortfall_bytes > 50 * MIB


def test_a_plan_says_the_same(field):
    enforcer, land, spec = over_a_pool(field, enforce=False)
    with enforcer.surveyor.surveyed([spec]) as findings:
        situation = enforcer.situated(land, findings, Orders())
        shown = plan_with_look(situation, findings.surveys, Machine())
        report = of_plan(findings.surveys[0], shown, inuse_complete=True)
    assert (report.need_bytes, report.shortfall_bytes) == (2 * MIB, 2 * MIB)
