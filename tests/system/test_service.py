"""`cachewarden run` as a process: starting, noticing, reloading, leaving, and what it tells systemd."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from tests.system.manager import managed, restarted
from tests.system.trees import fill_many

MIB = 1 << 20
_MAKE = """
import os, sys, time
path, size, days = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
os.makedirs(path)
with open(path + "/f", "wb") as file:
    file.write(os.urandom(size))
old = time.time() - days * 86400
os.utime(path + "/f", (old, old))
os.utime(path, (old, old))
"""


def make(root, name, mib=1, days=9):
    """An entry of one file, last touched so many days ago, made by a process that ends.

    Not by this one: while the maker of an entry lives, a service that saw it holds the entry.
    """
    path = os.path.join(root, name)
    subprocess.run([sys.executable, "-c", _MAKE, path, str(mib * MIB), str(days)], check=True)


def until(what, seconds=15.0):
    """Wait until `what()` is true, and return it."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return found


def test_a_limit_crossed_while_it_runs_is_under_its_target_again_within_seconds(warden, root):
    warden.policy |= {"max_size": "4MiB", "target_size": "3MiB"}
    warden.daemon |= {"interval": "1h", "settle": "200ms"}
    for number in range(4):
        make(root, f"old{number}", days=20 - number)
    with warden.service() as service:
        until(lambda: service.passes() >= 1)
        make(root, "new", mib=2, days=0)
        until(lambda: sorted(os.listdir(root)) == ["new", "old3"], seconds=8)
        # The names go first; what went is counted and said when its files are unlinked.
        until(lambda: service.metrics().get("cachewarden_evictions_total") == 3)
        assert service.log.count("event=evicted") == 3
        assert "reason=over_size" in service.log


def test_a_new_match_of_a_glob_and_a_path_that_appears_become_locations_without_a_restart(warden, tmp_path):
    homes = tmp_path / "homes"
    homes.mkdir()
    warden.locations.clear()
    warden.location("homes", f"{homes}/*/.accelerate")
    warden.location("late", str(tmp_path / "late"))
    warden.policy |= {"evict_all": True}
    warden.daemon |= {"interval": "1h", "settle": "200ms"}
    with warden.service() as service:
        late = f'{{location="late",path="{tmp_path}/late"}}'
        assert service.metrics()["cachewarden_location_available" + late] == 0
        make(str(tmp_path), "late/entry")
        make(str(homes), "alice/.accelerate/entry")
        until(lambda: os.listdir(tmp_path / "late") == [], seconds=20)
        until(lambda: os.listdir(homes / "alice" / ".accelerate") == [], seconds=20)
        assert service.metrics()["cachewarden_location_available" + late] == 1
    assert service.child.returncode == 0


def test_a_restart_keeps_what_was_learned_and_a_dropped_location_leaves_the_metrics(warden, root, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    make(root, "e")
    warden.location("other", str(other))
    with warden.service() as service:
        until(lambda: service.passes() >= 2)
        first = warden.entries()["e"]["first_seen"]
        del warden.locations["other"]
        warden.write()
        service.reload()
        until(lambda: 'location="other"' not in service.get("/metrics"))
    time.sleep(1.1)  # a first look that was forgotten would be a second younger
    with warden.service() as service:
        until(lambda: service.passes() >= 1)
        assert warden.entries()["e"]["first_seen"] == first


def test_an_entry_whose_opener_lives_stays_though_the_file_is_closed_and_goes_when_it_has_ended(
    needs_root, warden, root
):
    warden.daemon |= {"interval": "1h", "settle": "200ms"}
    make(root, "model")
    make(root, "other")
    warden.policy |= {"max_size": "10MiB"}
    reader = "import sys, time; open(sys.argv[1]).close(); print('read', flush=True); time.sleep(120)"
    with warden.service() as service:
        until(lambda: service.passes() >= 1)
        server = subprocess.Popen(
            [sys.executable, "-c", reader, os.path.join(root, "model", "f")],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout.readline() == "read\n"
            warden.policy = {**warden.policy, "evict_all": True}
            warden.policy.pop("max_size")
            warden.write()
            service.reload()
            until(lambda: os.listdir(root) == ["model"])
            before = service.passes()
            service.child.send_signal(signal.SIGUSR1)
            until(lambda: service.passes() > before)
            assert os.listdir(root) == ["model"]
            told = warden("explain", os.path.join(root, "model"), "--json").json
            assert [holder["pid"] for holder in told["holders"]] == [server.pid]
            assert told["reason"] == "live_opener"
        finally:
            server.kill()
            server.wait()
            server.stdout.close()
        service.child.send_signal(signal.SIGUSR1)
        until(lambda: os.listdir(root) == [])


def test_sigterm_in_mid_eviction_leaves_every_entry_whole_or_gone(warden, root):
    fill_many(root)
    warden.policy |= {"evict_all": True}
    with warden.service() as service:
        until(lambda: len(os.listdir(root)) < 60)
        begun = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - begun < 10
    for name in os.listdir(root):
        assert len(os.listdir(os.path.join(root, name))) == 200
    assert warden.once().status == 0
    assert os.listdir(root) == []


def test_commands_work_beside_a_running_service_and_are_seen_by_it(warden, root):
    make(root, "keep")
    warden.policy |= {"max_size": "100MiB"}
    with warden.service() as service:
        until(lambda: service.passes() >= 1)
        status = warden("status", "--json").json
        assert status["service"]["running"] is True
        assert status["service"]["pid"] == service.child.pid
        assert status["locations"][0]["watch_mode"] == ("inotify" if os.geteuid() else "fanotify")
        assert warden("pin", os.path.join(root, "keep")).status == 0
        warden.policy |= {"evict_all": True}
        warden.policy.pop("max_size")
        warden.write()
        service.reload()
        until(lambda: "configuration read again" in service.log)
        make(root, "goes")
        until(lambda: os.listdir(root) == ["keep"])
    assert warden("status", "--json").json["service"]["running"] is False


def test_opens_that_happen_while_the_service_is_away_are_known_after_its_restart(
    needs_root, warden, root, tmp_path
):
    make(root, "model")
    make(root, "other")
    warden.policy |= {"max_size": "10MiB"}
    reader = "import sys, time; open(sys.argv[1]).close(); print('read', flush=True); time.sleep(120)"
    with managed(warden, str(tmp_path)) as (manager, child):
        until(lambda: any(line.startswith("FDNAME=fanotify-") for _, line in manager.heard))
        child.terminate()
        assert child.wait(10) == 0
        until(lambda: manager.times("STOPPING=1"))
        names = [line.removeprefix("FDNAME=") for _, line in manager.heard if line.startswith("FDNAME=")]
        kept = list(manager.fds)
        assert len(kept) == len(names) == 3
        server = subprocess.Popen(
            [sys.executable, "-c", reader, os.path.join(root, "model", "f")],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout.readline() == "read\n"
            warden.policy = {"evict_all": True, "min_idle": "0s", "max_share": "100%"}
            warden.write()
            with restarted(warden, str(tmp_path), kept, names):
                until(lambda: os.listdir(root) == ["model"])
                time.sleep(2)
                assert os.listdir(root) == ["model"]
        finally:
            server.kill()
            server.wait()
            server.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_leaves_on_either_signal_with_status_0_and_takes_its_state_file_along(warden, number):
    with warden.service() as service:
        assert os.path.exists(os.path.join(warden.runtime_dir, "service.json"))
        service.child.send_signal(number)
        assert service.child.wait(10) == 0
    assert not os.path.exists(os.path.join(warden.runtime_dir, "service.json"))


def test_a_port_that_is_taken_ends_the_start_with_a_sentence(warden, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        warden.daemon["http"] = f"127.0.0.1:{taken.getsockname()[1]}"
        warden.write()
        done = warden("run")
    assert done.status == 1
    assert "in use" in done.err
    assert "Traceback" not in done.err


def test_nothing_is_written_to_standard_output_and_the_log_has_one_line_for_each_event(warden, root):
    make(root, "a\nERROR forged")
    warden.policy |= {"evict_all": True}
    with warden.service() as service:
        until(lambda: os.listdir(root) == [])
        until(lambda: "pass ended" in service.log)
    lines = service.log.splitlines()
    assert not any(line.startswith("ERROR") for line in lines)
    assert all(line.startswith("time=") for line in lines)
