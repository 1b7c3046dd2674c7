"""What the service manager hears: ready once and in time, and signs of life from the main loop alone."""

import ctypes
import itertools
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest
from tests.ports import free_port
from tests.system.hanging import mounted
from tests.system.manager import managed
from tests.system.trees import wait_until

SEIZE, INTERRUPT = 0x4206, 0x4207  # ptrace(2)
WATCHDOG_SECONDS = 2.0  # what `managed` asks for
MAKE = """
import os, sys
for number in range(40000):
    directory = sys.argv[1] + "/%03d" % (number % 400)
    os.makedirs(directory, exist_ok=True)
    os.close(os.open(f"{directory}/{number}", os.O_CREAT | os.O_WRONLY))
"""


def test_the_manager_hears_ready_once_signs_of_life_reloading_and_stopping(warden, tmp_path):
    with managed(warden, str(tmp_path)) as (manager, child):
        wait_until(lambda: manager.times("READY=1"))
        time.sleep(2.5)
        assert len(manager.times("READY=1")) == 1
        pings = manager.times("WATCHDOG=1")
        assert len(pings) >= 2
        assert max(b - a for a, b in itertools.pairwise(pings)) <= 1.2
        child.send_signal(signal.SIGHUP)
        wait_until(lambda: manager.times("RELOADING=1"))
        wait_until(lambda: len(manager.times("READY=1")) == 2)
        child.terminate()
        assert child.wait(10) == 0
        assert manager.times("STOPPING=1")


@contextmanager
def stalled(child):
    """Its main thread stands still, alone: all others go on."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    assert libc.ptrace(SEIZE, child.pid, None, None) == 0, os.strerror(ctypes.get_errno())
    assert libc.ptrace(INTERRUPT, child.pid, None, None) == 0
    os.waitpid(child.pid, 0x40000000)  # __WALL
    try:
        yield
    finally:
        assert libc.ptrace(17, child.pid, None, None) == 0  # PTRACE_DETACH


def test_a_main_loop_that_stands_still_sends_no_sign_of_life_whatever_other_threads_do(
    needs_root, warden, tmp_path
):
    port = free_port()
    warden.daemon["http"] = f"127.0.0.1:{port}"

    def health():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    with managed(warden, str(tmp_path)) as (manager, child):
        wait_until(lambda: manager.times("WATCHDOG=1"))
        wait_until(lambda: health() == 200)
        with stalled(child):
            time.sleep(0.3)
            before = len(manager.times("WATCHDOG=1"))
            wait_until(lambda: health() == 503, 15)  # another thread says it
            assert len(manager.times("WATCHDOG=1")) == before
        wait_until(lambda: len(manager.times("WATCHDOG=1")) > before)
        wait_until(lambda: health() == 200)


def longest_silence(manager, start):
    """The longest time without a sign of life, up to now."""
    return max(b - a for a, b in itertools.pairwise([start, *manager.times("WATCHDOG=1"), time.monotonic()]))


@pytest.mark.parametrize("how", ["many files", "slow", "hangs"])
def test_a_long_first_scan_delays_neither_ready_nor_signs_of_life(needs_root, warden, root, tmp_path, how):
    """Many files keep the interpreter busy, a slow filesystem makes the scan long, one that hangs endless."""
    port = free_port()
    warden.daemon["http"] = f"127.0.0.1:{port}"
    slow = tmp_path / "slow"
    slow.mkdir()
    if how == "many files":
        subprocess.run([sys.executable, "-c", MAKE, root], check=True)
    else:
        warden.location("slow", str(slow))
    with mounted(str(slow), hanging=how == "hangs", delay=0.15 if how == "slow" else 0):
        began = time.monotonic()
        with managed(warden, str(tmp_path)) as (manager, _):
            wait_until(lambda: manager.times("READY=1"), 30)
            (ready,) = manager.times("READY=1")
            assert ready - began < 5 + 10  # five are promised; a loaded machine imports slowly

            def scanned():
                page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
                return page.count("\ncachewarden_location_bytes{") >= (
                    1 if how == "hangs" else len(warden.locations)
                )

            wait_until(scanned, 60)
            time.sleep(3)
            assert longest_silence(manager, ready) < WATCHDOG_SECONDS
            assert len(manager.times("READY=1")) == 1
