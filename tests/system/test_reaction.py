"""What changes in a location is noticed within seconds, without polling, and nothing else asks for a pass."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.ports import free_port
from tests.system.command import PROGRAM, running
from tests.system.manager import managed, restarted
from tests.system.trees import wait_until

MIB = 2**20
SOON = 20.0  # seconds, on a machine with much else to do; docs/BENCHMARKS.md has what it takes alone
WRITE = """
import os, sys
path, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.makedirs(path, exist_ok=True)
for number in range(count):
    with open(f"{path}/{number}", "wb") as file:
        file.write(bytes(size))
"""
NO_FANOTIFY = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]


def write(path, count=1, size=4096):
    """Files of a program that ends: while it ran, it held its entry."""
    subprocess.run([sys.executable, "-S", "-E", "-c", WRITE, path, str(count), str(size)], check=True)


def mode(service, which):
    """Whether each location is watched in this mode."""
    shown = [line for line in service.metrics() if "watch_mode{" in line and f'mode="{which}"' in line]
    return bool(shown) and all(service.metrics()[line] for line in shown)


def figure(service, name):
    return service.metrics().get(f"cachewarden_location_{name}", 0)


@pytest.fixture
def quiet(needs_root, tmp_path, warden):
    """A filesystem on which only the test is at work, with a location; no pass is due but by a change."""
    point = tmp_path / "disk"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512M", "tmpfs", point], check=True)
    os.mkdir(point / "cache")
    warden.location("cache", str(point / "cache"))
    warden.daemon |= {"interval": "1h"}
    yield str(point)
    subprocess.run(["umount", "-l", point], check=True)


@contextlib.contextmanager
def serving(warden, wrap=()):
    """The service, after its first pass. `wrap` takes rights from it."""
    port = free_port()
    warden.daemon["http"] = f"127.0.0.1:{port}"
    warden.write()
    command = [*wrap, PROGRAM, "--config", warden.file]
    with running(command, port, os.path.join(warden.base, "service.log")) as service:
        wait_until(lambda: service.passes() >= 1, SOON)
        settled(service)
        yield service


def settled(service):
    """How many passes there were when no more came for two seconds: no wish is left from before."""
    before = -1
    while before != (before := service.passes()):
        time.sleep(2)
    return before


@pytest.mark.parametrize(
    ("wrap", "watched"), [((), "fanotify"), (NO_FANOTIFY, "inotify")], ids=["fanotify", "inotify"]
)
def test_a_burst_of_a_thousand_files_is_under_its_target_again_within_seconds(warden, quiet, wrap, watched):
    warden.policy |= {"max_size": "10MiB", "target_size": "8MiB"}
    write(f"{quiet}/cache/old", 1000)
    write(f"{quiet}/cache/older", 1000)
    with serving(warden, wrap) as service:
        assert mode(service, watched)
        for number in range(3):
            write(f"{quiet}/cache/burst{number}", 1000)
            wait_until(lambda: len(os.listdir(f"{quiet}/cache")) <= 2, SOON)
        assert "burst2" in os.listdir(f"{quiet}/cache")
        wait_until(lambda: figure(service, "bytes") <= 8 * MIB, SOON)


def test_a_start_is_one_pass(warden, quiet):
    """However long it takes: a second one would measure everything again, and count as late."""
    write(f"{quiet}/cache/entry", 10)
    with serving(warden) as service:
        assert service.passes() == 1
        assert service.metrics().get("cachewarden_passes_late_total", 0) == 0


def test_our_own_evictions_ask_for_no_pass(warden, quiet):
    warden.policy |= {"max_size": "1MiB", "target_size": "50%"}
    with serving(warden) as service:
        for number in range(3):
            write(f"{quiet}/cache/entry{number}", 100)
        wait_until(lambda: figure(service, "bytes") <= MIB // 2 and figure(service, "entries") == 1, SOON)
        before = settled(service)
        time.sleep(3)
        assert service.passes() == before


def test_a_busy_neighbour_on_the_same_filesystem_asks_for_no_pass(warden, quiet):
    with serving(warden) as service:
        before = settled(service)
        for number in range(10):
            write(f"{quiet}/elsewhere/{number}", 200)
        subprocess.run(["mv", f"{quiet}/elsewhere", f"{quiet}/moved"], check=True)
        subprocess.run(["rm", "-r", f"{quiet}/moved"], check=True)
        time.sleep(3)
        assert service.passes() == before
        write(f"{quiet}/cache/entry")
        wait_until(lambda: figure(service, "entries") == 1, SOON)


def test_trees_that_come_and_go_as_a_whole_are_in_the_figures_soon_after(warden, quiet):
    write(f"{quiet}/cache/entry/deep/er", 10)
    write(f"{quiet}/elsewhere/tree/one", 100)
    write(f"{quiet}/elsewhere/tree/two", 100)
    with serving(warden) as service:
        wait_until(lambda: figure(service, "files") == 10, SOON)
        os.rename(f"{quiet}/elsewhere/tree", f"{quiet}/cache/entry/deep/tree")
        wait_until(lambda: figure(service, "files") == 210, SOON)
        write(f"{quiet}/cache/entry/deep/tree/two/later", 5)
        wait_until(lambda: figure(service, "files") == 215, SOON)
        os.rename(f"{quiet}/cache/entry/deep/tree", f"{quiet}/cache/other")
        wait_until(lambda: figure(service, "entries") == 2, SOON)
        assert figure(service, "files") == 215
        subprocess.run(["rm", "-r", f"{quiet}/cache/other/two"], check=True)
        wait_until(lambda: figure(service, "files") == 110, SOON)
        os.rename(f"{quiet}/cache/other", f"{quiet}/elsewhere/tree")
        wait_until(lambda: figure(service, "files") == 10, SOON)
        assert figure(service, "bytes") == 10 * 4096


def test_a_location_that_is_renamed_away_and_back_is_missing_meanwhile_and_right_afterwards(warden, quiet):
    write(f"{quiet}/cache/entry", 10)
    with serving(warden) as service:
        wait_until(lambda: figure(service, "files") == 10, SOON)
        os.rename(f"{quiet}/cache", f"{quiet}/away")
        wait_until(lambda: figure(service, "available") == 0, SOON)
        write(f"{quiet}/away/entry/more", 5)
        os.rename(f"{quiet}/away", f"{quiet}/cache")
        wait_until(lambda: figure(service, "available") == 1 and figure(service, "files") == 15, SOON)
        write(f"{quiet}/cache/entry/again", 5)
        wait_until(lambda: figure(service, "files") == 20, SOON)


def test_a_location_that_is_renamed_and_back_at_once_loses_nothing(warden, quiet):
    write(f"{quiet}/cache/entry", 10)
    with serving(warden) as service:
        wait_until(lambda: figure(service, "files") == 10, SOON)
        os.rename(f"{quiet}/cache", f"{quiet}/away")
        subprocess.run(["cp", "-r", f"{quiet}/away/entry", f"{quiet}/away/entry2"], check=True)
        os.rename(f"{quiet}/away", f"{quiet}/cache")
        wait_until(lambda: figure(service, "files") == 20 and figure(service, "available") == 1, SOON)


@pytest.mark.parametrize("directories", [1, 20_000])
def test_a_burst_of_20000_files_while_the_service_is_stopped_is_counted_exactly(warden, quiet, directories):
    """In one directory they are one event; in as many directories they are more than the queue holds."""
    with open("/proc/sys/fs/fanotify/max_queued_events", encoding="ascii") as setting:
        length = int(setting.read())
    if length > 30_000:
        pytest.skip(f"fs.fanotify.max_queued_events is {length}: too many directories to make")
    with serving(warden) as service:
        assert mode(service, "fanotify")
        os.kill(service.child.pid, signal.SIGSTOP)
        try:
            for number in range(20_000):
                folder = f"{quiet}/cache/b/{number % directories}"
                if number < directories:
                    os.makedirs(folder)
                os.close(os.open(f"{folder}/f{number}", os.O_CREAT | os.O_WRONLY))
            write(f"{quiet}/cache/x/1/2/3/4/5", 1, 4 * MIB)
        finally:
            os.kill(service.child.pid, signal.SIGCONT)
        wait_until(lambda: figure(service, "files") == 20_001, 150)
        assert figure(service, "bytes") == 4 * MIB
        overflows = service.metrics().get("cachewarden_watch_overflows_total", 0)
        assert overflows >= 1 if directories > length else overflows == 0
        assert mode(service, "fanotify")
        if not overflows:  # after a walk of seconds, what changes ask for rests for four times as long
            write(f"{quiet}/cache/x/1/2/3/4/5/later")
            wait_until(lambda: figure(service, "files") == 20_002, 100)


GROW = "import sys; open(sys.argv[1], 'ab').write(bytes(100_000))"


def test_what_changes_while_the_service_is_away_is_in_the_figures_after_its_restart(warden, quiet, tmp_path):
    """The groups wait with the manager; what was read of them already, in the state directory."""
    kept_in = os.path.join(warden.state_dir, "structure.json")
    write(f"{quiet}/cache/entry", 10)

    def shown():
        (location,) = warden("status", "--json").json["locations"]
        return location["files"], location["bytes"], location["watch_mode"]

    with managed(warden, str(tmp_path)) as (manager, child):
        wait_until(lambda: shown() == (10, 40960, "fanotify"), SOON)
        wait_until(lambda: any(line.startswith("FDNAME=structure-") for _, line in manager.heard), SOON)
        child.terminate()
        assert child.wait(15) == 0
        assert os.path.exists(kept_in)
        names = [line.removeprefix("FDNAME=") for _, line in manager.heard if line.startswith("FDNAME=")]
        assert len(manager.fds) == len(names) == 3
        write(f"{quiet}/cache/new", 5)
        subprocess.run([sys.executable, "-c", GROW, f"{quiet}/cache/entry/0"], check=True)
        with restarted(warden, str(tmp_path), list(manager.fds), names):
            wait_until(lambda: shown()[:2] == (15, 15 * 4096 + 98304 + 4096), SOON)
            assert not os.path.exists(kept_in)
            write(f"{quiet}/cache/newer", 5)
            wait_until(lambda: shown()[0] == 20, SOON)
            assert shown()[2] == "fanotify"
