"""Servers that opened their weights, closed them and idle: who keeps an entry, for how long, over what."""

import os
import signal
import subprocess
import sys

import pytest
from tests.system.last_use import model_server
from tests.system.trees import age, fill, wait_until

pytestmark = pytest.mark.usefixtures("needs_root")


def left(root):
    return sorted(name for name in os.listdir(root) if not name.startswith("."))


def passed(service, times=2):
    """Wait for some more passes, which begin and end from here on."""
    before = service.passes()
    wait_until(lambda: service.passes() >= before + times)


@pytest.fixture
def impatient(warden):
    """Passes each second, and what is unused for two seconds goes."""
    warden.daemon |= {"interval": "1s", "settle": "100ms"}
    warden.policy |= {"max_idle": "2s"}
    return warden


@pytest.fixture(params=["directories", "flat"])
def weights(request, root):
    """Files of two old entries: directories of their own, or side by side in one."""
    paths = [f"{root}/{name}" for name in ("model", "other")]
    files = [f"{path}/weights" for path in paths] if request.param == "directories" else paths
    for path, file in zip(paths, files, strict=True):
        fill(file, 1)
        age(path, 9)
    return files


def test_weights_that_a_living_server_has_closed_stay_for_longer_than_max_idle(impatient, root, weights):
    impatient.policy["max_idle"] = "30d"
    with impatient.service() as service:
        passed(service)
        with model_server(weights[0]) as server:
            impatient.policy["max_idle"] = "2s"
            impatient.write()
            service.reload()
            wait_until(lambda: left(root) == ["model"])
            passed(service, 4)
            assert left(root) == ["model"]
            told = impatient("explain", f"{root}/model", "--json").json
            assert (told["reason"], told["holders"][0]["pid"]) == ("live_opener", server.pid)
        wait_until(lambda: left(root) == [])


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_of_the_service_forgets_no_server(impatient, root, weights, end):
    """Without a descriptor store: the record has the server by its pid and its start."""
    impatient.policy["max_idle"] = "30d"
    with impatient.service() as service:
        passed(service)
        with model_server(weights[0]) as server:
            listed = f"{server.pid}"
            wait_until(lambda: listed in impatient("explain", f"{root}/model", "--json").out)
            service.child.send_signal(end)
            service.child.wait(15)
            impatient.policy["max_idle"] = "2s"
            with impatient.service() as again:
                wait_until(lambda: left(root) == ["model"])
                passed(again, 4)
                assert left(root) == ["model"]
                server.kill()
                server.wait()
                wait_until(lambda: left(root) == [])


def test_a_command_without_a_service_knows_the_server_from_the_record(impatient, root, weights):
    impatient.policy["max_idle"] = "30d"
    with impatient.service() as service:
        passed(service)
        with model_server(weights[0]) as server:
            listed = f"{server.pid}"
            wait_until(lambda: listed in impatient("explain", f"{root}/model", "--json").out)
            service.stop()
            impatient.policy = {**impatient.policy, "evict_all": True}
            assert impatient.once().evicted == ["other"]
            assert left(root) == ["model"]
        assert impatient.once().evicted == ["model"]


def test_a_shorter_opener_hold_lets_go_of_a_server_that_does_not_open_again(impatient, root, weights):
    impatient.policy |= {"max_idle": "30d", "opener_hold": "3s"}
    with impatient.service() as service:
        passed(service)
        with model_server(weights[0]) as server:
            impatient.policy["max_idle"] = "1s"
            impatient.write()
            service.reload()
            wait_until(lambda: left(root) == [])
            assert server.poll() is None


_REOPENS = """
import sys, time
while True:
    with open(sys.argv[1], 'rb') as file:
        file.read(1)
    print('read', flush=True)
    time.sleep(0.5)
"""


def test_who_opens_again_and_again_holds_however_short_the_hold_is(impatient, root, weights):
    """Disk offload opens its files in each forward pass."""
    impatient.policy |= {"max_idle": "30d", "opener_hold": "3s"}
    command = [sys.executable, "-S", "-E", "-c", _REOPENS, weights[0]]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert reader.stdout.readline() == "read\n"
        with impatient.service() as service:
            passed(service)
            impatient.policy["max_idle"] = "1s"
            impatient.write()
            service.reload()
            wait_until(lambda: left(root) == ["model"])
            passed(service, 6)
            assert left(root) == ["model"]
            reader.kill()
            wait_until(lambda: left(root) == [])
    finally:
        reader.kill()
        reader.communicate()
