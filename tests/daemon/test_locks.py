"""One pass at a time on a location, between threads, processes, and after kill -9."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from cachewarden.clock import SystemClock
from cachewarden.errors import LocationLockedError, LocationUnavailableError
from cachewarden.locks import location_lock, lock_path

SECOND = 10**9

HOLD = """
import sys, time
from cachewarden.clock import SystemClock
from cachewarden.locks import location_lock
with location_lock(sys.argv[1].encode(), command="cachewarden once", clock=SystemClock()):
    print("held", flush=True)
    time.sleep(60)
"""


FORK = """
import os, sys, time
from cachewarden.clock import SystemClock
from cachewarden.locks import location_lock
with location_lock(sys.argv[1].encode(), command="cachewarden once", clock=SystemClock()):
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
print(child, flush=True)
os.waitpid(child, 0)
"""


@pytest.fixture
def path(tmp_path):
    found = tmp_path.stat()
    return lock_path(os.fsencode(tmp_path / "run"), found.st_dev, found.st_ino)


@pytest.fixture
def holder(path):
    """Another process that holds the lock; it is killed at the end at the latest."""
    child = subprocess.Popen([sys.executable, "-c", HOLD, path.decode()], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"held\n"
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def lock(path, **more):
    return location_lock(path, command="cachewarden run", clock=SystemClock(), **more)


def test_whoever_comes_second_is_told_who_holds_the_lock(path, holder):
    with pytest.raises(LocationLockedError) as refused, lock(path):
        pass
    assert f"'cachewarden once' (pid {holder.pid})" in str(refused.value)
    assert refused.value.exit_status == 3


def test_waiting_ends_after_the_given_time(path, holder):
    start = time.monotonic()
    with pytest.raises(LocationLockedError), lock(path, wait_ns=SECOND // 5):
        pass
    assert 0.2 <= time.monotonic() - start < 5


def test_kill_9_of_the_holder_lets_the_one_who_waits_go_on(path, holder):
    threading.Timer(0.2, holder.send_signal, [signal.SIGKILL]).start()
    with lock(path, wait_ns=30 * SECOND):
        pass


def test_a_stop_ends_the_wait(path, holder):
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    start = time.monotonic()
    with pytest.raises(LocationLockedError), lock(path, wait_ns=60 * SECOND, stop=stop):
        pass
    assert time.monotonic() - start < 10


def test_a_second_pass_in_the_same_process_is_kept_out_too(path):
    with lock(path), pytest.raises(LocationLockedError, match=f"pid {os.getpid()}"), lock(path):
        pass


def test_a_released_lock_can_be_taken_again_and_its_file_stays(path):
    for _ in range(3):
        with lock(path):
            assert os.path.exists(path)
    assert os.stat(path).st_size == 0, "it still names a holder"
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_an_error_inside_releases_the_lock(path):
    with pytest.raises(ZeroDivisionError), lock(path):
        _ = 1 / 0
    with lock(path):
        pass


def test_a_child_forked_under_the_lock_does_not_keep_it(path):
    parent = subprocess.Popen([sys.executable, "-c", FORK, path.decode()], stdout=subprocess.PIPE)
    child = int(parent.stdout.readline())
    try:
        with lock(path):
            os.kill(child, 0)  # it lives, and has the descriptor
    finally:
        os.kill(child, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()


def test_two_names_of_one_directory_share_a_lock(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real, link = (tmp_path / "real").stat(), (tmp_path / "link").stat()
    assert lock_path(b"/run", real.st_dev, real.st_ino) == lock_path(b"/run", link.st_dev, link.st_ino)


def test_without_a_place_for_lock_files_nothing_is_locked_and_that_is_said(tmp_path):
    (tmp_path / "file").touch()
    path = lock_path(os.fsencode(tmp_path / "file"), 1, 2)
    with pytest.raises(LocationUnavailableError, match="lock file"), lock(path):
        pass


def test_a_link_in_the_place_of_a_lock_file_is_not_followed(path, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("content")
    os.makedirs(os.path.dirname(path))
    os.symlink(victim, path)
    with pytest.raises(LocationUnavailableError), lock(path):
        pass
    assert victim.read_text() == "content"
