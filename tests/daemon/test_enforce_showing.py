"""Plans that nobody carries out: what they see, and that they touch nothing."""

import os
import subprocess
import sys

import pytest
from tests.daemon.passes import Field, Orders, holding, limit, policy

from cachewarden.enforce.showing import plan_with_leases, plan_with_look
from cachewarden.holders import Machine
from cachewarden.spec import Territory
from cachewarden_policies.reasons import KeepReason

_BEHIND_AN_OVERLAY = """
import os, subprocess, sys, time
lower, base = sys.argv[1:]
os.makedirs(base + "/up"), os.makedirs(base + "/work"), os.makedirs(base + "/merged")
options = f"lowerdir={lower},upperdir={base}/up,workdir={base}/work"
subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, base + "/merged"], check=True)
f = open(base + "/merged/f")
print("held", flush=True)
time.sleep(120)
"""


@pytest.fixture
def field(tmp_path):
    """Two entries, `old` and `young`, of which one has to go."""
    field = Field(tmp_path)
    field.entry("old", days=30)
    field.entry("young", days=1)
    return field


def shown(field, *, leases=False):
    """The plan for a limit of one entry: what goes, and what is kept for which reason."""
    spec = field.spec(policy(limits=limit(1)))
    with field.enforcer.surveyor.surveyed([spec]) as findings:
        situation = field.enforcer.situated(Territory((spec,)), findings, Orders())
        if leases:
            found = plan_with_leases(situation, findings.surveys, Machine(), field.clock)
        else:
            found = plan_with_look(situation, findings.surveys, Machine())
        names = [entry.name.decode() for entry in findings.surveys[0].facts]
    verdicts = found.plan.of(spec.key).verdicts
    going = [names[verdict.index] for verdict in verdicts if verdict.evict]
    kept = {names[verdict.index]: verdict.reason for verdict in verdicts if not verdict.evict}
    return going, kept, found.holders


@pytest.mark.parametrize("leases", [False, True])
def test_a_plan_takes_the_next_one_where_the_first_is_in_use_and_names_the_holder(field, leases):
    with holding("f = open(sys.argv[1])", str(field.root / "old" / "f")) as process:
        going, kept, holders = shown(field, leases=leases)
    assert (going, kept) == (["young"], {"old": KeepReason.IN_USE})
    ((holder,),) = holders.values()
    assert (holder.pid, holder.kind) == (process.pid, "open")


@pytest.mark.parametrize("leases", [False, True])
def test_a_plan_moves_nothing_and_leaves_nothing_behind(field, leases):
    before = {path: path.stat().st_ctime_ns for path in sorted(field.base.rglob("root/**/*"))}
    assert shown(field, leases=leases)[0] == ["old"]
    assert {path: path.stat().st_ctime_ns for path in sorted(field.base.rglob("root/**/*"))} == before
    assert not [name for name in os.listdir(field.base) if name.startswith(".cachewarden")]


def test_a_user_behind_an_overlay_in_another_namespace_keeps_the_lower_entry(field, needs_root):
    field.base.joinpath("elsewhere").mkdir()
    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", _BEHIND_AN_OVERLAY]
    process = subprocess.Popen(
        [*command, str(field.root / "old"), str(field.base / "elsewhere")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "held\n"
        going, kept, _ = shown(field, leases=True)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert going == ["young"]
    assert kept["old"] in (KeepReason.MOUNTPOINT, KeepReason.IN_USE)


def test_what_is_plainly_in_use_says_so_even_where_nothing_has_to_go(field):
    spec = field.spec(policy(limits=limit(100)))
    with (
        holding("f = open(sys.argv[1])", str(field.root / "young" / "f")),
        field.enforcer.surveyor.surveyed([spec]) as findings,
    ):
        situation = field.enforcer.situated(Territory((spec,)), findings, Orders())
        plan = plan_with_look(situation, findings.surveys, Machine()).plan.of(spec.key)
    assert [verdict.reason for verdict in plan.verdicts] == [KeepReason.WITHIN_LIMITS, KeepReason.IN_USE]
