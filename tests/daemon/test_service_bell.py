"""What wakes the main loop may interrupt it anywhere."""

import signal
import subprocess
import sys
import threading
import time

from cachewarden.service.bell import Bell

# A loop as the service's, and its handler; it ends when it was told to, and has no other way out.
_LOOP = """
import signal
from cachewarden.service.bell import Bell
bell, told = Bell(), []
def handler(number, frame):
    told.append(number)
    bell.ring()
signal.signal(signal.SIGUSR1, handler)
signal.signal(signal.SIGTERM, handler)
print("ready", flush=True)
while signal.SIGTERM not in told:
    bell.wait(0.0001)
"""


def test_signals_that_interrupt_the_loop_anywhere_stop_it_nowhere():
    """A handler runs in the thread that it interrupts: a lock that this one holds would never be free."""
    with subprocess.Popen([sys.executable, "-c", _LOOP], stdout=subprocess.PIPE) as loop:
        try:
            assert loop.stdout.readline() == b"ready\n"
            end = time.monotonic() + 3
            while time.monotonic() < end:
                loop.send_signal(signal.SIGUSR1)
                time.sleep(0.0005)  # a handler is to end before the next one begins
            loop.send_signal(signal.SIGTERM)
            assert loop.wait(60) == 0
        finally:
            loop.kill()


def test_what_rang_before_is_not_lost_and_is_one_waking():
    bell = Bell()
    for _ in range(3):
        bell.ring()
    bell.wait(600)
    begun = time.monotonic()
    bell.wait(0.05)
    assert time.monotonic() - begun >= 0.05


def test_another_thread_wakes_who_waits():
    bell = Bell()
    threading.Timer(0.05, bell.ring).start()
    bell.wait(600)
