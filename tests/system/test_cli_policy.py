"""Limits, ages and the full disk, as passes of the command over real trees."""

import contextlib
import json
import os
import subprocess
import time

import pytest
from tests.system.command import PROGRAM, environment
from tests.system.trees import MIB, age, allocated, fill, holding_lock, holding_open, loop_mounted


def _row(root: str, count: int, oldest: float) -> None:
    """Entries e0, e1, … of 1 MiB; each is a day younger than the one before."""
    for number in range(count):
        fill(f"{root}/e{number}/f")
        age(f"{root}/e{number}", oldest - number)


def _names(*numbers: int) -> list[str]:
    return [f"e{number}" for number in numbers]


def test_eviction_stops_exactly_at_the_target_and_a_second_pass_does_nothing(warden, root):
    """10 MiB used, limit 8 MiB, target 6 MiB: four entries, the least recently used ones."""
    _row(root, 10, 20)
    warden.policy |= {"max_size": "8MiB", "target_size": "6MiB"}
    planned = warden.plan()
    done = warden.once()
    assert planned.evicted == done.evicted == _names(0, 1, 2, 3)
    assert (done.only["need_bytes"], done.only["shortfall_bytes"]) == (4 * MIB, 0)
    assert done.json["outcome"] == "trimmed"
    assert allocated(root) == done.only["bytes_after"] == 6 * MIB
    again = warden.once()
    assert (again.evicted, again.json["outcome"], again.status) == ([], "within_limits", 0)


def test_usage_equal_to_the_limit_is_within_it(warden, root):
    """A limit is crossed by more than it, not by it."""
    _row(root, 4, 20)
    warden.policy |= {"max_size": "4MiB", "target_size": "50%"}
    assert warden.once().evicted == []
    warden.policy |= {"max_size": str(4 * MIB - 1)}
    assert warden.once().evicted == _names(0, 1, 2)


def test_entries_of_the_same_age_go_in_the_order_of_their_names(warden, root):
    """Whatever the directory's order is."""
    for name in ("c", "a", "d", "b"):
        fill(f"{root}/{name}/f")
    then = time.time() - 9 * 86_400
    for name in "abcd":
        for path in (f"{root}/{name}/f", f"{root}/{name}"):
            os.utime(path, (then, then))
    warden.policy |= {"max_size": "3MiB", "target_size": "2MiB"}
    assert warden.once().evicted == ["a", "b"]


def test_one_giant_in_use_does_not_cost_everything_without_saying_that_it_cannot_help(warden, root):
    """Plan and pass both say how much is missing, and the giant stays."""
    _row(root, 6, 20)
    fill(f"{root}/giant/f", 12)
    warden.policy |= {"max_size": "8MiB", "target_size": "6MiB"}
    with holding_open(f"{root}/giant/f"):
        planned = warden.plan()
        done = warden.once()
    assert planned.only["shortfall_bytes"] == done.only["shortfall_bytes"] == 6 * MIB
    assert done.only["blocked_bytes"]["in_use"] == 12 * MIB
    assert (done.json["outcome"], done.status) == ("short", 1)
    assert os.path.getsize(f"{root}/giant/f") == 12 * MIB


def test_what_was_unpacked_with_old_stamps_is_as_young_as_its_unpacking(warden, root):
    """A freshly unpacked tree is not thirty days old at birth, in this process and in the next one."""
    fill(f"{root}/plain/f")
    warden.policy |= {"max_idle": "30d"}
    assert warden.once().evicted == []
    fill(f"{root}/unpacked/f")
    age(f"{root}/unpacked", 4000)
    for _ in range(2):
        done = warden.once()
        assert done.evicted == []
    listed = warden.entries()
    assert listed["unpacked"]["last_use_source"] == "first_seen"
    assert listed["unpacked"]["first_seen"] > listed["plain"]["first_seen"][:10]


def test_old_stamps_do_not_count_where_the_change_time_is_honest(warden, root):
    """The first pass over a tree that was unpacked before anybody watched: ctime says when."""
    fill(f"{root}/unpacked/f")
    age(f"{root}/unpacked", 4000)
    warden.location("cache", root, ignore_ctime=False)
    warden.policy |= {"max_idle": "30d"}
    assert warden.once().evicted == []
    assert warden.entries()["unpacked"]["last_use_source"] == "stamps"


def test_stamps_from_the_future_are_now_and_expire_like_all_others(warden, root):
    """Clamped when seen first, and remembered: a file of 2036 does not stay until 2036."""
    for name, days in (("future", -3650), ("plain", 0)):
        fill(f"{root}/{name}/f")
        age(f"{root}/{name}", days)
    warden.policy |= {"max_idle": "20s"}  # far more than a pass takes, on a busy machine too
    done = warden.once()
    assert done.evicted == []
    listed = warden.entries()
    assert listed["future"]["last_use"] <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    time.sleep(21)
    assert sorted(warden.once().evicted) == ["future", "plain"]


def _fill_disk(fs: str) -> None:
    """Files until not even one block is left, for root or anybody."""
    for name, size in (("fill", 64 * 1024), ("fill2", 512)):
        with open(f"{fs}/{name}", "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * size)


@pytest.mark.root
@pytest.mark.parametrize("known", [True, False], ids=["with a ledger", "started on the full disk"])
def test_a_full_disk_does_not_stop_the_one_who_makes_room(needs_root, warden, tmp_path, known):
    """Ledger and cache are on the full filesystem: no journal, no trash directory can be made."""
    fs = str(tmp_path / "fs")
    with loop_mounted(str(tmp_path / "image"), fs):
        os.mkdir(f"{fs}/cache")
        warden.state = f"{fs}/state"
        warden.location("cache", f"{fs}/cache")
        for number in (1, 2, 3):
            fill(f"{fs}/cache/e{number}/f", 4)
            age(f"{fs}/cache/e{number}", 9 - number)
        if known:
            assert warden.once().status == 0
        _fill_disk(fs)
        warden.policy |= {"max_size": "8MiB", "target_size": "100%"}
        done = warden.once()
        assert done.evicted == ["e1"], done.err
        assert (done.status, done.json["outcome"]) == (0, "trimmed")
        os.unlink(f"{fs}/fill")
        after = warden.once()
        assert (after.evicted, after.status) == ([], 0)
        assert set(warden.entries()) == {"e2", "e3"}
        assert sorted(os.listdir(f"{fs}/cache")) == ["e2", "e3"]


def _start_once(warden, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, "--config", warden.file, "once", "--json", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def test_two_passes_at_once_remove_what_one_would(warden, root):
    """The second waits for the location's lock, looks again, and finds nothing to do."""
    _row(root, 40, 60)
    warden.policy |= {"max_size": "20MiB", "target_size": "100%"}
    warden.write()
    both = [_start_once(warden) for _ in range(2)]
    reports = []
    for run in both:
        out, err = run.communicate(timeout=60)
        assert run.returncode == 0, err
        reports.append(json.loads(out)["locations"][0])
    gone = [each["entry"] for report in reports for each in report["evicted"]]
    assert sorted(gone) == sorted(_names(*range(20)))
    assert sum(each["freed_bytes"] for report in reports for each in report["evicted"]) == 20 * MIB
    assert [report["failed"] for report in reports] == [[], []]
    assert sorted(os.listdir(root)) == sorted(_names(*range(20, 40)))


def test_a_pass_that_cannot_get_the_lock_names_its_holder_and_a_killed_holder_holds_nothing(warden, root):
    """Exit status 3 after the wait that was asked for; kill -9 gives the lock back at once."""
    _row(root, 2, 20)
    warden.policy |= {"evict_all": True}
    warden.daemon["enforce"] = False
    assert warden.once().status in {0, 1}
    (name,) = os.listdir(f"{warden.runtime_dir}/locks")
    warden.daemon["enforce"] = True
    with holding_lock(f"{warden.runtime_dir}/locks/{name}") as holder:
        started = time.monotonic()
        refused = warden.once("--wait", "1s")
        assert refused.status == 3
        assert 1 <= time.monotonic() - started < 15
        assert refused.err.strip(), "nothing said why"
        assert sorted(os.listdir(root)) == ["e0", "e1"]
        holder.kill()
        holder.wait()
        assert warden.once("--wait", "1s").evicted == ["e0", "e1"]
