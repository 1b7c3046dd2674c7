"""SIGHUP: what a broken file, a repaired one and one that comes in mid-pass change, and what they keep."""

import os
import signal
import subprocess
import sys
import time

import pytest
from tests.system.trees import fill_many, wait_until
from tests.system.users import User

SUCCESSFUL = "cachewarden_config_last_reload_successful"
SUCCESS = "cachewarden_config_last_reload_success_timestamp_seconds"
READER = "import sys, time; open(sys.argv[1]).close(); print('read', flush=True); time.sleep(300)"


def broken(warden):
    """Write the configuration with a line that is none; its number."""
    warden.write()
    with open(warden.file, "a+", encoding="utf-8") as file:
        file.write("max_size = = 7\n")
        file.seek(0)
        return len(file.readlines())


def reload_of(warden):
    """How the last reload went, as the service says: with a broken file, commands of root end at once."""
    answer = User(0).ask(f"{warden.runtime_dir}/control.sock", "GET", "/api/v1/status")
    return answer.document["service"]["reload"]


@pytest.fixture
def reader(root):
    """Starts a process that reads an entry's file, closes it, and lives on."""
    children = []

    def start(entry):
        path = os.path.join(root, entry, "f")
        child = subprocess.Popen([sys.executable, "-c", READER, path], stdout=subprocess.PIPE, text=True)
        children.append(child)
        assert child.stdout.readline() == "read\n"

    yield start
    for child in children:
        child.kill()
        child.wait()
        child.stdout.close()


def test_reloads_good_and_bad_keep_counters_openers_pauses_and_measured_usage(
    needs_root, warden, root, reader
):
    for number in range(4):
        User(0).make(f"{root}/e{number}")
    User(0).make(f"{root}/served")
    warden.policy |= {"max_size": "4MiB", "target_size": "100%", "max_entries": 5}
    warden.daemon |= {"interval": "1h", "settle": "200ms"}
    with warden.service() as service:
        wait_until(lambda: service.passes() >= 1)
        before = service.metrics()
        assert before["cachewarden_evictions_total"] == 1
        left = sorted(os.listdir(root))
        assert len(left) == 4
        reader("served")
        assert warden("pause", "cache").status == 0

        line = broken(warden)
        service.reload()
        wait_until(lambda: service.metrics()[SUCCESSFUL] == 0)
        after = service.metrics()
        assert after[SUCCESS] == before[SUCCESS]
        for name in ("evictions_total", "freed_bytes_total", "location_bytes", "location_limit_bytes"):
            assert after[f"cachewarden_{name}"] == before[f"cachewarden_{name}"], name
        assert f"{warden.file}:{line}" in service.log
        told = reload_of(warden)
        assert told.startswith("failed: ")
        assert f"{warden.file}:{line}" in told

        for key in ("max_size", "target_size", "max_entries"):
            warden.policy.pop(key)
        warden.policy["evict_all"] = True
        passes = service.passes()
        warden.write()
        service.reload()
        wait_until(lambda: service.metrics()[SUCCESSFUL] == 1)
        assert service.metrics()["cachewarden_location_bytes"] == 4 << 20  # without waiting for a pass
        assert service.metrics()[SUCCESS] > before[SUCCESS]
        wait_until(lambda: service.passes() > passes)
        assert sorted(os.listdir(root)) == left  # paused, as before
        assert reload_of(warden) == "ok"

        assert warden("resume", "cache").status == 0
        service.child.send_signal(signal.SIGUSR1)
        wait_until(lambda: os.listdir(root) == ["served"])  # its reader lives, as before
        wait_until(lambda: service.metrics()["cachewarden_evictions_total"] == 4)


@pytest.mark.parametrize("dropped", [False, True], ids=["only reports", "is none"])
def test_a_pass_takes_nothing_more_of_a_location_that_is_taken_back(warden, root, tmp_path, dropped):
    fill_many(root)
    warden.policy |= {"evict_all": True}
    with warden.service() as service:
        wait_until(lambda: len(os.listdir(root)) < 60)
        if dropped:
            warden.locations = {"other": {**warden.locations["cache"], "path": str(tmp_path / "other")}}
            warden.policy = {"max_size": "1GiB"}
        else:
            warden.location("cache", root, enforce=False)
        warden.write()
        service.reload()
        wait_until(lambda: "configuration read again" in service.log)
        time.sleep(0.5)  # the victim that it was at
        left = len(os.listdir(root))
        assert left > 0, "the pass was over before: this shows nothing"
        if dropped:  # with all that was counted of it
            time.sleep(2)
        else:  # it ends early, and another one reports
            wait_until(lambda: service.passes() >= 2, 60)
        assert len(os.listdir(root)) == left


def test_a_pass_ends_under_the_configuration_under_which_it_began(warden, root):
    """In mid-pass a limit comes that all entries keep: those of this pass go, and none of a later one."""
    fill_many(root)
    warden.policy |= {"evict_all": True}
    with warden.service() as service:
        wait_until(lambda: len(os.listdir(root)) < 60)
        del warden.policy["evict_all"]
        warden.policy["max_size"] = "1GiB"
        warden.write()
        service.reload()
        wait_until(lambda: "configuration read again" in service.log)
        during = len(os.listdir(root))
        wait_until(lambda: service.passes() >= 1, 60)
        assert os.listdir(root) == []
        assert during > 0, "the pass was over before the reload: this shows nothing"
        User(0).make(f"{root}/later")
        passes = service.passes()
        service.child.send_signal(signal.SIGUSR1)
        wait_until(lambda: service.passes() > passes)
        assert os.listdir(root) == ["later"]
        assert service.metrics()["cachewarden_evictions_total"] == 60
