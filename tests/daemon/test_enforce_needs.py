"""What a report says had to go, where a limit is shared with other locations."""

import os
import subprocess

import pytest
from tests.daemon.passes import MIB, Field, Orders, limit, policy

from cachewarden.enforce.reporting import of_plan
from cachewarden.enforce.showing import plan_with_look
from cachewarden.holders import Machine
from cachewarden.spec import PoolSpec, Territory
from cachewarden_policies.policy import Amount, Floor, Limits
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


@pytest.mark.root
@pytest.mark.parametrize("joint", [False, True])
def test_a_pass_stops_at_its_target_of_files_though_the_first_victim_cannot_go(tmp_path, needs_root, joint):
    field = Field(tmp_path)
    for number in range(10):
        field.file(f"e{number}", mib=0.0625, days=20 - number)
    fixed = field.root / "e0"
    if subprocess.run(["chattr", "+i", fixed], check=False, capture_output=True).returncode:
        pytest.skip("this filesystem has no immutable files")
    limits = Limits(max_files=8, target_files=Amount(absolute=4))
    spec = field.spec(policy() if joint else policy(limits=limits))
    pools = (PoolSpec("homes", ("root",), limits),) if joint else ()
    try:
        field.enforcer.run(Territory((spec,), pools), [spec], Orders())
    finally:
        subprocess.run(["chattr", "-i", fixed], check=True)
    assert field.names() == ["e0", "e7", "e8", "e9"]
