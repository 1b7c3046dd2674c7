"""Two of us at work on one location: together they evict exactly what one alone would have."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.system.command import PROGRAM, Warden, environment
from tests.system.trees import MIB, age, fill, wait_until

from cachewarden.client import connect
from cachewarden.errors import ServiceRefusedError

OLD = [f"e{number:02}" for number in range(12)]


@pytest.fixture
def stock(root):
    """Twelve entries of 1 MiB, each used a day later than the one before."""
    for number, name in enumerate(OLD):
        fill(f"{root}/{name}/f", 1)
        age(f"{root}/{name}", 40 - number)


def other(warden: Warden, **daemon: object) -> Warden:
    """A second configuration over the same state, locks and locations."""
    second = Warden(f"{warden.base}-2", dict(warden.policy), warden.locations, state=warden.state_dir)
    second.daemon = {**warden.daemon, "runtime_dir": warden.runtime_dir, "http": "", **daemon}
    second.write()
    return second


@contextlib.contextmanager
def service(warden: Warden):
    """`run` without its HTTP side."""
    with open(f"{warden.base}/log", "wb") as log:
        child = subprocess.Popen(
            [PROGRAM, "--config", warden.file, "run"], stdout=log, stderr=log, env=environment()
        )
    try:
        yield child
    finally:
        child.terminate()
        child.wait(15)


def history(warden):
    """Names and freed bytes of what is in the books, the oldest first."""
    rows = json.loads(warden("history", "--json").out)
    assert {row["outcome"] for row in rows} <= {"removed"}
    return [row["entry"] for row in reversed(rows)], sum(row["freed_bytes"] for row in rows)


def exactly_one_pass(warden, root):
    """The six that were used longest ago went, once each; the others stayed."""
    assert sorted(os.listdir(root)) == OLD[6:]
    names, freed = history(warden)
    assert names == OLD[:6]
    assert freed == 6 * MIB


def test_passes_at_once_take_what_one_takes(warden, root, stock):
    """Whoever loses waits, finds nothing to do, and says so; no error of one is the other's doing."""
    warden.policy |= {"max_size": "6MiB", "target_size": "100%"}
    warden.write()
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: warden("once", "--json"), range(4)))
    assert [run.status for run in runs] == [0] * 4
    assert sorted(name for run in runs for name in run.evicted) == OLD[:6]
    assert [failed for run in runs for failed in run.only["failed"]] == []
    exactly_one_pass(warden, root)


@pytest.mark.parametrize("loser", ["a service", "once"])
def test_a_service_beside_another_takes_what_one_takes(warden, root, stock, loser):
    warden.policy |= {"max_size": "6MiB", "target_size": "100%"}
    warden.daemon |= {"interval": "1s", "http": ""}
    warden.write()
    second = other(warden)
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(service(warden))]
        if loser == "a service":
            children.append(stack.enter_context(service(second)))
        for _ in range(3):  # passes that begin each second leave little room on a busy machine
            assert second("once", "--json", "--wait", "3m").status == 0
        wait_until(lambda: sorted(os.listdir(root)) == OLD[6:])
        for child in children:
            assert child.poll() is None, open(f"{warden.base}/log").read()  # noqa: SIM115
    exactly_one_pass(warden, root)


def test_a_plan_that_is_applied_during_passes_takes_what_one_takes(warden, root, stock):
    warden.policy |= {"max_size": "6MiB", "target_size": "100%"}
    warden.write()
    plan = f"{warden.base}/plan.json"
    assert warden("plan", "-o", plan).status == 0
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(warden, *words) for words in [("apply", plan, "--json"), ("once", "--json")] * 2]
        runs = [job.result() for job in jobs]
    assert {run.status for run in runs} == {0}
    assert sorted(name for run in runs for name in run.evicted) == OLD[:6]
    exactly_one_pass(warden, root)


_OPEN = "import sys, time; open(sys.argv[1]).close(); print(flush=True); time.sleep(60)"


@contextlib.contextmanager
def opened_and_closed(path):
    """A program that opened a file, closed it, and runs on."""
    with subprocess.Popen([sys.executable, "-S", "-c", _OPEN, path], stdout=subprocess.PIPE) as child:
        try:
            child.stdout.readline()
            yield child
        finally:
            child.kill()


@pytest.mark.usefixtures("needs_root")
def test_a_command_knows_of_opens_that_the_service_has_not_written_yet(warden, root, stock):
    """It writes once a second, and each of these may come at any moment of that second."""
    warden.policy |= {"max_size": "100MiB"}
    warden.daemon |= {"interval": "1h"}
    with warden.service() as running, contextlib.ExitStack() as programs:
        wait_until(lambda: running.passes() >= 1)
        for name in OLD[:5]:
            program = programs.enter_context(opened_and_closed(f"{root}/{name}/f"))
            told = warden("explain", f"{root}/{name}", "--json").json
            assert [each["pid"] for each in told["holders"]] == [program.pid]
        programs.enter_context(opened_and_closed(f"{root}/{OLD[5]}/f"))
        second = other(warden)
        second.policy = {"evict_all": True}
        second.once()
    assert sorted(os.listdir(root)) == OLD[:6]


@pytest.mark.usefixtures("needs_root")
def test_a_service_that_does_not_answer_is_named_and_nothing_is_called_complete(warden, root, stock):
    warden.policy |= {"max_size": "100MiB"}
    warden.daemon |= {"interval": "1h"}
    with warden.service() as running:
        wait_until(lambda: running.passes() >= 1)
        running.child.send_signal(signal.SIGSTOP)
        try:
            done = warden("once", "--json")
        finally:
            running.child.send_signal(signal.SIGCONT)
    assert done.status == 0
    assert done.only["inuse_complete"] is False
    assert "did not tell who opened what" in done.err


@pytest.mark.usefixtures("needs_root")
def test_use_is_known_completely_where_the_service_has_the_location_too(warden, root, stock, tmp_path):
    """It saw nothing of what stands in another configuration alone."""
    warden.policy |= {"max_size": "100MiB"}
    warden.daemon |= {"interval": "1h"}
    fill(f"{tmp_path}/more/e/f")
    with warden.service() as running:
        wait_until(lambda: running.passes() >= 1)
        second = other(warden)
        second.locations = {
            **warden.locations,
            "more": {**warden.locations["cache"], "path": f"{tmp_path}/more"},
        }
        located = second.once().json["locations"]
    assert {each["name"]: each["inuse_complete"] for each in located} == {"cache": True, "more": False}


@pytest.mark.usefixtures("needs_root")
def test_what_the_service_could_not_write_it_does_not_call_written(warden, root, stock):
    """A command looks into the file; what waits in the memory of the service is not there."""
    warden.policy |= {"max_size": "100MiB"}
    warden.daemon |= {"interval": "1h"}
    with (
        warden.service() as running,
        contextlib.closing(sqlite3.connect(f"{warden.state_dir}/ledger.sqlite")) as ledger,
    ):
        wait_until(lambda: running.passes() >= 1)
        asked = connect(os.fsencode(warden.runtime_dir))
        ledger.execute("BEGIN IMMEDIATE")
        with opened_and_closed(f"{root}/{OLD[0]}/f"):
            with pytest.raises(ServiceRefusedError, match="waits for the disk"):
                asked.ask("POST", "/flush", body={}, seconds=60)
            ledger.execute("ROLLBACK")
            assert asked.ask("POST", "/flush", body={}, seconds=60) == {}
            assert ledger.execute("SELECT count(*) FROM openers").fetchone() == (1,)


def test_a_lock_of_a_killed_pass_is_free_at_once_and_a_held_one_names_its_holder(warden, root, stock):
    warden.policy |= {"max_size": "6MiB", "target_size": "100%"}
    warden.write()
    locks = f"{warden.runtime_dir}/locks"
    warden("once")
    [lock] = os.listdir(locks)
    code = (
        "import fcntl, sys, time; f = open(sys.argv[1]); fcntl.flock(f, 2); print(flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, f"{locks}/{lock}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        busy = warden("once", "--wait", "0s")
        assert busy.status == 3
        assert "at work on this location" in busy.err
        holder.kill()
    assert warden("once", "--wait", "0s").status == 0
