"""Locks of the owning tools: held ones keep an entry, leftovers do not, and no lock file is ever harmed."""

import os
import socket
import struct
import subprocess
import sys
import time

import pytest
from tests.daemon.evicting import DAY, Cache, process

from cachewarden.report import Removed
from cachewarden_policies.reasons import KeepReason

FLOCK = "import fcntl; fd = os.open(args[0], os.O_RDONLY); fcntl.flock(fd, fcntl.LOCK_EX)"
SHARED_FLOCK = FLOCK.replace("LOCK_EX", "LOCK_SH")
RECORD = "import fcntl; fd = os.open(args[0], os.O_RDWR); fcntl.lockf(fd, fcntl.LOCK_EX)"
SHARED_RECORD = RECORD.replace("LOCK_EX", "LOCK_SH")
LOCK = "locks/e.lock"


@pytest.fixture
def cache(tmp_path):
    cache = Cache(tmp_path / "cache")
    cache.put("e/sub/f")
    cache.put(LOCK, 0)
    yield cache
    cache.sweep()


def write(cache, text, path=LOCK):
    with open(cache.path(path), "w") as file:
        file.write(text)


def evict(cache, **changes):
    return cache.evict(cache.victim("e", **({"locks": (LOCK.encode(),)} | changes)))


def is_locked(cache, outcome):
    assert outcome.reason is KeepReason.LOCKED
    assert cache.has("e/sub/f")


@pytest.mark.parametrize("code", [FLOCK, SHARED_FLOCK, RECORD, SHARED_RECORD])
def test_a_held_lock_keeps_the_entry_and_the_same_file_left_behind_does_not(cache, code):
    before = os.stat(cache.path(LOCK))
    with process(code, cache.path(LOCK)) as holder:
        outcome = evict(cache)
        is_locked(cache, outcome)
        assert holder.pid in [each.pid for each in outcome.holders]
    assert isinstance(evict(cache), Removed)
    after = os.stat(cache.path(LOCK))
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


@pytest.mark.parametrize("place", ["", "e", "e/sub"])
def test_a_lock_on_a_directory_keeps_what_is_below_it(cache, place):
    with process(FLOCK, cache.path(place)):
        is_locked(cache, evict(cache))
    assert isinstance(evict(cache), Removed)


def test_a_lock_on_the_directory_of_the_locks_or_on_a_neighbour_is_nobodys_business(cache):
    cache.put("n/f")
    with process(FLOCK, cache.path("n")):
        assert isinstance(evict(cache), Removed)


def test_a_lock_file_that_does_not_exist_is_no_lock_and_is_not_made(cache):
    assert isinstance(evict(cache, locks=(b"locks/none.lock", b"nowhere/none.lock")), Removed)
    assert os.listdir(cache.path("locks")) == [b"e.lock"]
    assert not cache.has("nowhere")


def test_a_lock_file_inside_the_entry_is_held_through_the_leased_descriptor(cache):
    cache.put("e/e.lock", 0)
    with process(FLOCK, cache.path("e/e.lock")):
        is_locked(cache, evict(cache, locks=(b"e/e.lock",)))
    assert isinstance(evict(cache, locks=(b"e/e.lock",)), Removed)


def test_one_lock_file_of_several_entries_does_not_stand_in_its_own_way(cache):
    cache.put("n/f")
    victims = [cache.victim(name, locks=(LOCK.encode(),)) for name in ("e", "n")]
    assert [type(outcome) for outcome in cache.evict(*victims)] == [Removed, Removed]


def test_a_soft_lock_of_a_living_process_here_is_held_at_any_age(cache):
    with process("") as holder:
        write(cache, f"{holder.pid}\n{socket.gethostname()}\n")
        os.utime(cache.path(LOCK), (1, 1))
        is_locked(cache, evict(cache))
    assert isinstance(evict(cache), Removed)


@pytest.mark.parametrize("token", ["", "123456\n"])
def test_a_soft_lock_of_a_dead_process_here_is_free_at_once(cache, token):
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    write(cache, f"{int(dead.stdout)}\n{socket.gethostname()}\n{token}")
    assert isinstance(evict(cache), Removed)
    assert cache.has(LOCK)


@pytest.mark.parametrize(
    "text", ["4242\nnode-77\n", "4242\n", "locked by bob\n", '{"pid": 1}', "\xff\xfe", "-1\nx"]
)
def test_a_soft_lock_of_another_host_or_of_nobody_knows_whom_is_held_until_it_is_old(cache, text):
    write(cache, text)
    old = time.time_ns() - 2 * DAY
    is_locked(cache, evict(cache, soft_lock_age=DAY))
    os.utime(cache.path(LOCK), ns=(old, old))
    is_locked(cache, evict(cache, soft_lock_age=3 * DAY))
    assert isinstance(evict(cache, soft_lock_age=DAY), Removed)
    assert cache.has(LOCK)


def test_a_lock_that_is_a_link_is_held_by_nobody_knows_whom(cache, tmp_path):
    (tmp_path / "target").write_text("")
    os.symlink(tmp_path / "target", cache.path("locks/link"))
    is_locked(cache, evict(cache, locks=(b"locks/link",)))


def test_a_lock_file_that_cannot_be_a_lock_file_keeps_the_entry(cache):
    os.mkfifo(cache.path("locks/fifo"))
    outcome = evict(cache, locks=(b"locks/fifo",))
    assert outcome.reason in (KeepReason.LOCKED, KeepReason.UNKNOWN)
    assert cache.has("e/sub/f")


@pytest.mark.root
def test_the_pid_of_a_soft_lock_may_be_that_of_a_container_on_this_host(cache, needs_root):
    """There the process is number 1 or so, and here that number is another one, or nobody's."""
    program = """
import os, time
for _ in range(40):
    if os.fork() == 0: os._exit(0)
    os.wait()
child = os.fork()
if child: print(child, flush=True)
time.sleep(120)
"""
    code = ["unshare", "-pf", "--kill-child", sys.executable, "-c", program]
    with subprocess.Popen(code, stdout=subprocess.PIPE) as container:
        try:
            pid = int(container.stdout.readline())
            write(cache, f"{pid}\n{socket.gethostname()}\n")
            is_locked(cache, evict(cache))
        finally:
            container.kill()
            container.wait()


def test_our_own_lock_is_gone_after_every_outcome(cache):
    with process("fd = os.open(args[0], os.O_RDONLY)", cache.path("e/sub/f")):
        evict(cache)
        take = "import fcntl,sys\nfor p in sys.argv[1:]: fcntl.flock(open(p), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        held = [os.fsdecode(cache.path(path)) for path in ("", "e", "e/sub", LOCK)]
        take = take.replace("open(p)", "__import__('os').open(p, 0)")
        subprocess.run([sys.executable, "-c", take, *held], check=True)
    assert struct.calcsize("hhqqi4x") == 32  # struct flock of 64-bit Linux
