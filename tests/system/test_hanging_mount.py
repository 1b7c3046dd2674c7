"""A mount that hangs silences only itself, costs nothing, and is taken up when it answers again."""

import os
import signal
import time
from dataclasses import dataclass

import pytest
from tests.ports import free_port
from tests.system.command import PROGRAM, running
from tests.system.hanging import mounted
from tests.system.trees import wait_until
from tests.system.users import User

SCRAPES = 200
# Ten times what is promised, and more than any machine under load needs. The promise is measured, not tested.
SLOWEST_SECONDS = 1.0


@dataclass
class Scrape:
    """One look at the service: how long it took to answer, and what it had open then."""

    seconds: float
    threads: int
    descriptors: int


def scrapes(service, number):
    """So many, each with a pass due, so that they are as many turns of the main loop."""
    found = []
    for _ in range(number):
        service.child.send_signal(signal.SIGUSR1)
        begun = time.monotonic()
        service.get("/metrics")
        took = time.monotonic() - begun
        at = f"/proc/{service.child.pid}"
        found.append(Scrape(took, len(os.listdir(f"{at}/task")), len(os.listdir(f"{at}/fd"))))
        time.sleep(0.05)
    return found


def gauges(service, name, location):
    """The values of a location's gauge, one for each path."""
    begins = f'cachewarden_location_{name}{{location="{location}"'
    return [value for series, value in service.metrics().items() if series.startswith(begins)]


def no_more(before, after, spare=3):
    """Between passes no more threads and descriptors are open than before: the least of each counts."""
    for what in ("threads", "descriptors"):
        least, most = (min(getattr(each, what) for each in found) for found in (before, after))
        assert most <= least + spare, what


@pytest.fixture
def hang(needs_root, tmp_path):
    """Where the filesystem that can hang is mounted."""
    path = tmp_path / "hang"
    path.mkdir()
    return str(path)


@pytest.mark.parametrize(("pattern", "matches"), [("", 1), ("/*", 2)], ids=["itself", "glob"])
def test_while_a_mount_hangs_the_rest_goes_on_and_it_is_taken_up_when_it_answers(
    warden, root, hang, pattern, matches
):
    warden.location("hang", hang + pattern)
    warden.policy |= {"max_size": "2.5MiB", "target_size": "2.5MiB"}
    warden.daemon |= {"interval": "1s", "settle": "100ms"}
    with mounted(hang) as mount, warden.service() as service:
        wait_until(lambda: gauges(service, "bytes", "hang") == [2 * 1024**2 / matches] * matches)
        before = scrapes(service, 40)
        mount.hang()
        wait_until(lambda: gauges(service, "available", "hang") == [0] * matches, 60)
        seen = gauges(service, "last_success_timestamp_seconds", "hang")
        during = scrapes(service, SCRAPES)
        assert max(each.seconds for each in during) < SLOWEST_SECONDS
        no_more(before, during, spare=8)  # what the pass and the look that hang have opened
        no_more(during[:40], during[-40:])
        assert gauges(service, "last_success_timestamp_seconds", "hang") == seen  # and so its age grows
        assert gauges(service, "bytes", "hang") == [2 * 1024**2 / matches] * matches  # as far as is known
        assert gauges(service, "available", "cache") == [1]
        for name in ("a", "b", "c"):
            User(0).make(os.path.join(root, name))
        wait_until(lambda: len(os.listdir(root)) == 2, 30)
        mount.answer()
        wait_until(lambda: gauges(service, "available", "hang") == [1] * matches, 30)
        wait_until(lambda: min(gauges(service, "last_success_timestamp_seconds", "hang")) > max(seen), 30)
        no_more(before, scrapes(service, 40))
        assert "this is a bug" not in service.log


def test_a_mount_that_hangs_before_the_start_delays_nothing_and_is_taken_up_when_it_answers(
    warden, root, hang
):
    warden.location("hang", hang)
    warden.policy |= {"max_size": "2.5MiB", "target_size": "2.5MiB"}
    warden.daemon |= {"interval": "1s", "settle": "100ms"}
    with mounted(hang, hanging=True) as mount, warden.service() as service:
        for name in ("a", "b", "c"):
            User(0).make(os.path.join(root, name))
        wait_until(lambda: len(os.listdir(root)) == 2, 30)
        during = scrapes(service, SCRAPES)
        assert max(each.seconds for each in during) < SLOWEST_SECONDS
        no_more(during[:40], during[-40:])
        assert set(gauges(service, "available", "hang")) <= {0}
        mount.answer()
        wait_until(lambda: gauges(service, "available", "hang") == [1], 30)
        wait_until(lambda: gauges(service, "bytes", "hang") == [2 * 1024**2], 30)


def test_a_mount_whose_server_died_is_unavailable_until_it_is_mounted_again(warden, root, hang):
    """It answers, with ENOTCONN; and between two mounts an empty directory lies there, which is no cache."""
    warden.location("hang", hang, must_be_mount=True)
    warden.policy |= {"max_size": "2.5MiB", "target_size": "2.5MiB"}
    warden.daemon |= {"interval": "1s", "settle": "100ms"}
    with warden.service() as service:
        with mounted(hang) as mount:
            wait_until(lambda: gauges(service, "bytes", "hang") == [2 * 1024**2], 30)
            mount.server.kill()
            wait_until(lambda: gauges(service, "available", "hang") == [0], 30)
            for name in ("a", "b", "c"):
                User(0).make(os.path.join(root, name))
            wait_until(lambda: len(os.listdir(root)) == 2, 30)
        scrapes(service, 40)
        assert gauges(service, "available", "hang") == [0]
        assert gauges(service, "bytes", "hang") == [2 * 1024**2]  # what was seen last, and not 0
        with mounted(hang):
            wait_until(lambda: gauges(service, "available", "hang") == [1], 30)


def test_homes_on_a_mount_that_hangs_delay_neither_start_nor_reload(warden, root, hang):
    """Where homes are is looked up, because none of them may be a location."""
    port = free_port()
    warden.daemon |= {"http": f"127.0.0.1:{port}", "interval": "1s"}
    warden.write()
    command = ["env", f"HOME={hang}/homes/me", PROGRAM, "--config", warden.file]
    with mounted(hang, hanging=True), running(command, port, f"{warden.base}/service.log") as service:
        wait_until(lambda: service.passes() >= 1, 30)
        threads = len(os.listdir(f"/proc/{service.child.pid}/task"))
        for number in range(1, 6):
            service.reload()
            wait_until(lambda number=number: service.log.count("configuration read again") == number, 30)
        assert len(os.listdir(f"/proc/{service.child.pid}/task")) <= threads + 2
        assert service.stop() == 0


def test_reloads_while_a_mount_hangs_are_taken_up_and_cost_nothing(warden, root, hang, tmp_path):
    """Also one that takes away the location that hangs, and one that brings it back."""
    (tmp_path / "more").mkdir()
    warden.location("hang", hang + "/*")
    warden.daemon |= {"interval": "1s", "settle": "100ms"}
    with mounted(hang) as mount, warden.service() as service:

        def reloaded(times):
            warden.write()
            service.reload()
            wait_until(lambda: service.log.count("configuration read again") == times, 30)

        wait_until(lambda: len(gauges(service, "bytes", "hang")) == 2)
        mount.hang()
        wait_until(lambda: gauges(service, "available", "hang") == [0, 0], 60)
        before = scrapes(service, 40)
        for number in range(1, 9):
            warden.policy["max_size"] = f"{number}GiB"
            reloaded(number)
            wait_until(lambda number=number: gauges(service, "limit_bytes", "cache") == [number << 30])
            assert gauges(service, "available", "hang") == [0, 0]
        no_more(before, scrapes(service, 40))
        kept = warden.locations.pop("hang")
        warden.location("more", str(tmp_path / "more"))
        reloaded(9)
        assert 'location="hang"' not in service.get("/metrics")
        wait_until(lambda: gauges(service, "bytes", "more") == [0])
        warden.locations["hang"] = kept
        reloaded(10)
        mount.answer()
        wait_until(lambda: gauges(service, "available", "hang") == [1, 1], 30)
        no_more(before, scrapes(service, 40))
        assert service.stop() == 0


@pytest.mark.parametrize("hanging", [True, False], ids=["from the start", "later"])
def test_a_service_whose_only_location_hangs_is_ready_and_leaves_in_time(warden, hang, hanging):
    warden.locations.clear()
    warden.location("hang", hang)
    with mounted(hang, hanging=hanging) as mount, warden.service() as service:
        if not hanging:
            wait_until(lambda: gauges(service, "bytes", "hang") == [2 * 1024**2])
            mount.hang()
        service.child.send_signal(signal.SIGUSR1)
        time.sleep(1)
        begun = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - begun < 10
