"""The lease itself: what the kernel says of a file that others use, and of one that nobody does."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from tests.daemon.evicting import process

from cachewarden.kernel import leases


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"x" * 4096)
    leases.ignore_sigio()
    fd = os.open(path, os.O_RDONLY)
    yield fd, path
    os.close(fd)


def test_a_file_that_nobody_uses_is_leased_again_and_again(file):
    for _ in range(3):
        assert leases.take(file[0]) == 0
        assert leases.nobody_waits(file[0])
        assert leases.unbroken(file[0])
        leases.give_back(file[0])


def test_a_file_that_somebody_has_open_is_not(file):
    with process("fd = os.open(args[0], os.O_RDONLY)", file[1]):
        assert leases.take(file[0]) == errno.EAGAIN
    assert leases.take(file[0]) == 0


def test_what_cannot_be_leased_is_unknown_and_not_in_use(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    assert leases.take(fd) not in (0, errno.EAGAIN)
    os.close(fd)


def test_giving_back_what_is_not_held_is_no_error(file):
    leases.give_back(file[0])
    assert leases.take(file[0]) == 0
    leases.give_back(file[0])
    leases.give_back(file[0])


def test_who_does_not_wait_is_refused_and_noticed(file):
    assert leases.take(file[0]) == 0
    with pytest.raises(BlockingIOError):
        os.open(file[1], os.O_RDONLY | os.O_NONBLOCK)
    assert not leases.nobody_waits(file[0])
    assert not leases.unbroken(file[0])
    leases.give_back(file[0])


def test_who_waits_goes_on_as_soon_as_the_lease_is_given_back(file):
    assert leases.take(file[0]) == 0
    got = []

    def opener():
        got.append(os.open(file[1], os.O_RDONLY))

    thread = threading.Thread(target=opener)
    thread.start()
    deadline = time.monotonic() + 10
    while leases.nobody_waits(file[0]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not leases.unbroken(file[0])
    assert not got
    leases.give_back(file[0])
    thread.join(10)
    assert len(got) == 1
    os.close(got[0])


def test_a_descriptor_that_only_names_the_file_breaks_nothing(file):
    assert leases.take(file[0]) == 0
    os.close(os.open(file[1], os.O_PATH))
    os.stat(file[1])
    assert leases.unbroken(file[0])
    leases.give_back(file[0])


def test_the_signal_of_a_breaking_lease_would_end_the_process_and_is_ignored(tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    program = """
import os, signal, sys
from cachewarden.kernel import leases
signal.signal(signal.SIGIO, signal.SIG_DFL)  # ignored is inherited
if sys.argv[2] == 'yes': leases.ignore_sigio(); leases.ignore_sigio()
fd = os.open(sys.argv[1], os.O_RDONLY); assert leases.take(fd) == 0
try: os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
except BlockingIOError: print('lives')
"""
    for ignore, status in (("yes", 0), ("no", -signal.SIGIO)):
        command = [sys.executable, "-c", program, tmp_path / "f", ignore]
        assert subprocess.run(command, stdout=subprocess.PIPE, check=False).returncode == status


def test_outside_the_main_thread_ignoring_it_for_the_first_time_is_an_error():
    program = """
import signal, threading
from cachewarden.kernel import leases
signal.signal(signal.SIGIO, signal.SIG_DFL)  # ignored is inherited
def first():
    try: leases.ignore_sigio()
    except ValueError: print('refused', flush=True)
thread = threading.Thread(target=first); thread.start(); thread.join()
leases.ignore_sigio()
thread = threading.Thread(target=leases.ignore_sigio); thread.start(); thread.join()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("refused\n", "")
