"""Only what was planned goes, and its parts go and come back in an order that nobody can mistake."""

import os
import shutil
import subprocess
import sys
import time

import pytest
from tests.daemon.evicting import Cache, at_step

from cachewarden.holders import Machine
from cachewarden.report import Removed, Spared
from cachewarden_policies.reasons import KeepReason

COMMIT = "a" * 40


@pytest.fixture
def cache(tmp_path):
    cache = Cache(tmp_path / "cache")
    yield cache
    cache.sweep()


def revision(cache):
    """An entry of several paths: witness, reference, blobs."""
    paths = [f"r/snapshots/{COMMIT}", "r/refs/main", *(f"r/blobs/b{number}" for number in range(20))]
    cache.put(f"{paths[0]}/f")
    for path in paths[1:]:
        cache.put(path)
    return cache.victim(*paths)


def test_another_directory_with_the_same_sums_is_not_the_planned_one(cache):
    """A copy that keeps all times, put in its place: equal in size, number and newest time."""
    cache.put("e/f")
    planned = cache.victim("e")
    shutil.copytree(cache.path("e"), cache.path("new"))
    shutil.rmtree(cache.path("e"))
    os.mkdir(cache.path("in between"))  # or the inode's number might be used again
    os.rename(cache.path("new"), cache.path("e"))
    twin = cache.victim("e", dev=planned.dev, ino=planned.ino)  # same sums, another inode
    assert os.stat(cache.path("e")).st_ino != planned.ino
    assert cache.evict(twin) == Spared(KeepReason.CHANGED)
    assert cache.has("e/f")


@pytest.mark.parametrize("call", ["renameat2", "unlinkat"])
def test_the_witness_goes_first_comes_back_last_and_is_unlinked_last(cache, call):
    """Killed at each single rename and unlink, and at each one of the start that takes up what is left.

    Whoever sees the witness may rely on all the rest; without it nothing of the rest is brought back alone.
    """
    eviction = "cache.evict(cache.victim(*args[1:]))"
    for number in (2, 12, 23):
        victim = revision(cache)
        paths = [os.fsdecode(path) for path in victim.paths]
        assert killed_at(call, number, cache, eviction, paths)
        whole_if_the_witness_is_there(cache, paths)
        for later in (1, 9):
            killed_at(call, later, cache, "cache.recover()", paths)
            whole_if_the_witness_is_there(cache, paths)
        cache.recover()
        there = {path for path in paths if cache.has(path)}
        assert there in (set(), set(paths))
        shutil.rmtree(cache.path("r"))


def whole_if_the_witness_is_there(cache, paths):
    if cache.has(paths[0]):
        assert [path for path in paths if not cache.has(path)] == []


def killed_at(call, number, cache, action, paths):
    """Run `action` in a process that is killed as it enters its n-th system call of this name.

    Whether it was killed.
    """
    code = (
        "import sys; args = sys.argv[1:]; from tests.daemon.evicting import Cache; cache = Cache(args[0])\n"
    )
    # Without --seccomp-bpf, which is faster and counts the calls of a thread wrongly (strace 6.1).
    strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}"]
    inject = f"inject={call}:signal=KILL:when={number}"
    done = subprocess.run(
        [*strace, "-e", inject, sys.executable, "-c", code + action, os.fsdecode(cache.root), *paths],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [*sys.path]))},
        check=False,
        capture_output=True,
    )
    return done.returncode < 0


class Slow(Machine):
    """The machine, which is busy for a while at its n-th look."""

    def __init__(self, *when):
        super().__init__()
        self.looks, self.when = 0, when

    def look(self):
        self.looks += 1
        if self.looks in self.when:
            time.sleep(1.1)
        return super().look()


@pytest.mark.parametrize("names", [["e"], ["e", "n", "o", "p", "q"]], ids=["one", "several"])
def test_what_was_put_back_because_time_ran_out_is_tried_once_more(cache, names):
    """Otherwise others, used later, would go in its place whenever the machine is busy for a second."""
    for name in names:
        cache.put(f"{name}/sub/f")
    outcomes = cache.evict(*map(cache.victim, names), surroundings=Slow(2))
    assert all(isinstance(each, Removed) for each in (outcomes if len(names) > 1 else [outcomes]))


def test_what_takes_too_long_twice_stays_whole(cache):
    cache.put("e/sub/f")
    before = cache.tree()
    outcome = cache.evict(cache.victim("e"), surroundings=Slow(*range(2, 50, 2)))
    assert isinstance(outcome, Spared)
    assert outcome.reason is KeepReason.UNKNOWN
    assert cache.tree() == before


def test_what_changed_in_the_meantime_is_not_taken_for_our_own_trace(cache):
    cache.put("e/sub/f")
    slow = Slow(2)
    hook = at_step("verified", lambda: (time.sleep(0.05), cache.put("e/new")))
    assert cache.evict(cache.victim("e"), surroundings=slow, at=hook).reason is KeepReason.CHANGED
    assert cache.has("e/new")
