"""kill -9 at any moment, and a start afterwards: the entry is whole, or gone, and never in between."""

import os
import random
import signal
import time

import pytest
from tests.daemon.evicting import Cache, at_step, process

from cachewarden.report import Removed

COMMIT = "a" * 40


@pytest.fixture
def cache(tmp_path):
    cache = Cache(tmp_path / "cache")
    yield cache
    cache.sweep()


def directory(cache, files):
    """An entry that is one directory."""
    for number in range(files):
        cache.put(f"e/{number % 5}/{number}")
    return cache.victim("e")


def revision(cache, files):
    """An entry of several paths, as a revision in a hub cache: the snapshot is the witness."""
    for number in range(files):
        cache.put(f"r/blobs/b{number}", 100)
    os.makedirs(cache.path(f"r/snapshots/{COMMIT}"))
    for number in range(files):
        os.symlink(f"../../blobs/b{number}", cache.path(f"r/snapshots/{COMMIT}/f{number}"))
    cache.put("r/refs/main", 40)
    blobs = [f"r/blobs/b{number}" for number in range(files)]
    husks = (b"r/refs", b"r/snapshots", b"r/blobs", b"r")
    return cache.victim(f"r/snapshots/{COMMIT}", "r/refs/main", *blobs, husks=husks)


def killed(action):
    """Run `action` in a child until it is killed or done; True when it was killed."""
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("room", [8192, 64], ids=["at once", "in rounds"])
@pytest.mark.parametrize("make", [directory, revision])
@pytest.mark.parametrize("step", ["opened", "leased", "moved", "verified", "committed", "released"])
def test_killed_at_a_step_it_is_put_back_or_finished(cache, make, step, room):
    if room == 64 and step in ("leased", "released"):
        step = "committed"  # in rounds, there is no moment at which everything is leased
    victim = make(cache, 90)
    witness = victim.paths[0]
    before = cache.tree()
    for _ in range(5):  # what takes more than a second on a busy machine is given up before that step
        dead = killed(lambda: cache.evict(victim, room=room, at=at_step(step, die)))
        if dead or not cache.has(witness):
            break
    assert dead or room == 64
    absent = not cache.has(witness)
    fates = {each.fate for each in cache.recover(b"r/blobs", b"r/refs", b"r/snapshots")}
    if step in ("committed", "released"):
        assert absent
        assert not any(cache.has(path) for path in victim.paths)
        assert fates <= {"removed"}
    else:
        assert absent == (step in ("moved", "verified"))
        assert fates == ({"put back"} if absent else set())
        assert cache.tree() == before
    with cache.trash() as trash:
        assert list(trash.pieces()) == []


@pytest.mark.parametrize("make", [directory, revision])
def test_killed_at_a_random_moment_it_is_whole_or_absent_and_then_whole_or_gone(cache, make):
    chance = random.Random(7)
    outcomes = set()
    for _ in range(12):
        victim = make(cache, 400)
        before = cache.tree()
        witness = victim.paths[0]
        child = os.fork()
        if child == 0:
            try:
                cache.evict(victim)
            finally:
                os._exit(0)
        time.sleep(chance.uniform(0, 0.12))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if cache.has(witness):
            assert {path: seen for path, seen in before.items() if path.startswith(witness)} == {
                path: seen for path, seen in cache.tree().items() if path.startswith(witness)
            }
        cache.recover()
        after = cache.tree()
        outcomes.add(after == before)
        if after != before:
            assert not any(cache.has(path) for path in victim.paths)
            assert isinstance(cache.evict(make(cache, 400)), Removed)
        else:
            assert isinstance(cache.evict(make_again(cache, victim)), Removed)
    assert outcomes  # which of the two it was is chance


def make_again(cache, victim):
    """The same entry as it is measured now: coming back sets a directory's ctime."""
    return cache.victim(*victim.paths, husks=victim.husks)


def test_in_the_moment_between_two_moves_the_witness_is_away_first_and_back_last(cache):
    """A tool that sees the witness sees all of the rest, whatever it sees otherwise."""
    victim = revision(cache, 60)
    witness, rest = victim.paths[0], victim.paths[1:]
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        torn = looks = 0
        os.write(write, b".")
        try:
            while not os.path.exists(cache.path("stop")):
                there = cache.has(witness)
                missing = sum(not cache.has(path) for path in rest)
                # Looked at first and again afterwards: there all the time, and something is missing.
                torn += there and cache.has(witness) and missing > 0
                looks += 1
            os.write(write, b"%d %d" % (torn, looks))
        finally:
            os._exit(0)
    os.read(read, 1)
    fd = os.open(cache.path("r/blobs/b7"), os.O_PATH)
    for _ in range(5):
        killed(lambda: cache.evict(make_again(cache, victim), at=at_step("moved", die)))
        assert not cache.has(witness)
        cache.recover()
    os.close(fd)
    cache.put("stop")
    os.waitpid(child, 0)
    torn, looks = map(int, os.read(read, 100).split())
    os.close(read)
    os.close(write)
    assert looks > 0
    assert torn == 0


def test_after_a_crash_the_old_one_does_not_replace_a_new_one(cache):
    victim = directory(cache, 10)
    assert killed(lambda: cache.evict(victim, at=at_step("verified", die)))
    cache.put("e/new")
    [fate] = cache.recover()
    assert (fate.fate, fate.freed_bytes) == ("removed", 10 * 4096)
    assert sorted(cache.tree()) == [b"e", b"e/new"]


def test_after_a_crash_what_is_used_and_has_no_place_waits(cache):
    victim = directory(cache, 10)
    fd = os.open(cache.path("e/0/0"), os.O_PATH)
    assert killed(lambda: cache.evict(victim, at=at_step("verified", die)))
    cache.put("e/new")
    with process("fd = os.open(args[0], os.O_RDONLY)", os.readlink(f"/proc/self/fd/{fd}")):
        [fate] = cache.recover()
        assert fate.fate.startswith("kept")
    os.close(fd)
    [fate] = cache.recover()
    assert fate.fate == "removed"


def test_one_locations_recovery_leaves_what_is_anothers(cache, tmp_path):
    other = Cache(tmp_path / "other")
    other.put("x/f")
    victim = other.victim("x")
    assert killed(lambda: other.evict(victim, at=at_step("moved", die)))
    assert cache.recover() == []
    assert not other.has("x")
    [fate] = other.recover()
    assert fate.fate == "put back"
    assert other.has("x/f")


@pytest.mark.parametrize(
    "origin", [b"..%2f..%2fescaped", b"%2fetc%2fescaped", b"a%2f..%2f..%2fescaped", b".."]
)
def test_a_forged_name_in_the_trash_leads_nowhere_outside_the_location(cache, tmp_path, origin):
    """In a trash that belongs to a user, the user can write any name."""
    cache.put("a/f")
    with cache.trash() as trash:
        place = trash.make()
        forged = os.path.join(place.path, b"m-" + trash.location + b"-1-0-" + origin)
        os.mkdir(forged)
        open(forged + b"/payload", "w").close()
    cache.recover()
    assert not any(
        "escaped" in name for base in (tmp_path, tmp_path.parent, "/etc") for name in os.listdir(base)
    )
    assert not os.path.exists(forged)
