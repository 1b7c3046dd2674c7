"""Somebody comes between the plan and the eviction, or between one of its steps and the next."""

import os
import subprocess
import threading
import time

import pytest
from tests.daemon.evicting import Cache, at_step, process

from cachewarden.report import Failed, Removed, Spared
from cachewarden_policies.reasons import KeepReason

STEPS = ["opened", "leased", "moved"]
HOLD_DIRECTORY = "fd = os.open(args[0], os.O_RDONLY)"


def breaking():
    """Whether the kernel holds somebody's open because of a lease."""
    with open("/proc/locks", "rb") as locks:
        return b"BREAKING" in locks.read()


@pytest.fixture
def cache(tmp_path):
    cache = Cache(tmp_path / "cache")
    cache.put("e/sub/f", 8192)
    cache.put("e/g")
    yield cache
    cache.sweep()


def opened(cache, path, flags=os.O_RDONLY):
    """An action: another process opens `path` of the cache while it is evicted, and keeps it."""
    holder = []

    def act():
        code = f"fd = os.open(args[0], {flags})"
        held = process(code, cache.path(path))
        held.__enter__()
        holder.append(held)

    return act, lambda: [each.__exit__(None, None, None) for each in holder]


def test_opened_between_plan_and_eviction_it_stays(cache):
    victim = cache.victim("e")
    with process(HOLD_DIRECTORY, cache.path("e/g")):
        assert cache.evict(victim).reason is KeepReason.IN_USE
    assert cache.has("e/sub/f")


@pytest.mark.parametrize(
    "change",
    {
        "replaced by another directory of the same name": "mv e old && cp -a old e && rm -r old",
        "a newer stamp": "touch e/g",
        "grown": "head -c 100000 /dev/zero >> e/g",
        "one file more": "mkdir e/new && : > e/new/x",
        "one file less": "rm e/g",
        "a file replaced": "cp -a e/g e/h && mv e/h e/g",
        "a directory swapped for a link": "mv e/sub sub && ln -s ../sub e/sub",
        "itself a link": "mv e real && ln -s real e",
    }.items(),
    ids=lambda change: change[0],
)
def test_what_changed_since_it_was_measured_stays_as_it_is(cache, change):
    victim = cache.victim("e")
    time.sleep(0.05)  # stamps are as coarse as the kernel's tick
    subprocess.run(["sh", "-ec", change[1]], cwd=cache.root, check=True)
    before = cache.tree()
    assert cache.evict(victim) == Spared(KeepReason.CHANGED)
    assert cache.tree() == before


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "change",
    {
        "one file more": lambda e, _: open(e + b"/sub/new", "w").close(),
        "a link more": lambda e, _: os.symlink("x", e + b"/sub/new"),
        "one file less": lambda e, _: os.unlink(e + b"/sub/f"),
        "a file renamed": lambda e, _: os.rename(e + b"/sub/f", e + b"/sub/renamed"),
        "a file replaced": lambda e, _: (open(e + b"/x", "w").close(), os.rename(e + b"/x", e + b"/g")),
        "a file linked": lambda e, outside: os.link(e + b"/g", outside),
        "a stamp set": lambda e, _: os.utime(e + b"/g", (1, 1)),
    }.items(),
    ids=lambda change: change[0],
)
def test_what_changes_while_it_is_evicted_is_put_back_with_the_change(cache, step, change, tmp_path):
    """Through the directory itself, wherever it is at that moment, as a process with a descriptor would."""
    fd = os.open(cache.path("e"), os.O_RDONLY)
    victim = cache.victim("e")

    def act():
        change[1](os.readlink(f"/proc/self/fd/{fd}").encode(), tmp_path / "outside")

    outcome = cache.evict(victim, at=at_step(step, act))
    os.close(fd)
    assert isinstance(outcome, Spared)
    assert outcome.reason is KeepReason.CHANGED
    assert outcome.rolled_back or step in ("opened", "leased")  # what shows before the move is not moved
    assert cache.has("e")
    assert min(os.listdir(cache.root)) == b"e"
    with cache.trash() as trash:
        assert list(trash.pieces()) == []


def test_another_directory_put_in_its_place_before_the_move_comes_back_too(cache):
    victim = cache.victim("e")

    def act():
        os.rename(cache.path("e"), cache.path("kept"))
        cache.put("e/other")

    outcome = cache.evict(victim, at=at_step("leased", act))
    assert outcome.reason is KeepReason.CHANGED
    assert cache.has("e/other")
    assert cache.has("kept/sub/f")


def test_moved_away_before_the_move_it_is_left_alone(cache):
    victim = cache.victim("e")
    outcome = cache.evict(
        victim, at=at_step("leased", lambda: os.rename(cache.path("e"), cache.path("elsewhere")))
    )
    assert outcome == Spared(KeepReason.CHANGED)
    assert cache.has("elsewhere/sub/f")


@pytest.mark.parametrize("step", ["opened", "moved"])
@pytest.mark.parametrize("kind", ["fd = os.open(args[0], os.O_RDONLY)", "os.chdir(args[0])"])
def test_somebody_who_steps_into_the_entry_meanwhile_gets_it_back(cache, step, kind):
    """He got in by a descriptor that he had: here the test's own, handed down to the new process."""
    victim, before = cache.victim("e"), cache.tree("e")
    fd = os.open(cache.path("e/sub"), os.O_RDONLY)
    holders = []

    def act():
        holder = process(kind, os.readlink(f"/proc/self/fd/{fd}"))
        holders.append(holder)
        holder.__enter__()

    outcome = cache.evict(victim, at=at_step(step, act))
    holders[0].__exit__(None, None, None)
    os.close(fd)
    assert outcome.reason is KeepReason.IN_USE
    assert outcome.rolled_back == (step == "moved")
    assert cache.tree("e") == before


@pytest.mark.parametrize("step", ["leased", "moved"])
def test_an_opener_at_the_door_waits_a_moment_and_then_has_the_whole_entry(cache, step):
    """He looked the path up before the move; the kernel holds his open until the lease is given back."""
    victim, before = cache.victim("e"), cache.tree("e")
    fd = os.open(cache.path("e/sub"), os.O_PATH)
    result = []

    def opener():
        try:
            got = os.open("f", os.O_RDONLY, dir_fd=fd)
            result.append(os.fstat(got).st_ino)
            os.close(got)
        except OSError as error:
            result.append(error)

    thread = threading.Thread(target=opener)

    def act():
        thread.start()
        while not breaking():
            time.sleep(0.01)

    outcome = cache.evict(victim, at=at_step(step, act))
    thread.join(10)
    os.close(fd)
    assert outcome.reason is KeepReason.IN_USE
    assert outcome.rolled_back == (step == "moved")
    assert result == [os.stat(cache.path("e/sub/f")).st_ino]
    assert cache.tree("e") == before


def test_an_opener_that_does_not_wait_and_gave_up_is_noticed_too(cache):
    victim = cache.victim("e")
    fd = os.open(cache.path("e/sub"), os.O_PATH)

    def act(step):  # each time: what takes too long on a busy machine is tried once more
        if step == "moved":
            with pytest.raises(BlockingIOError):
                os.open("f", os.O_RDONLY | os.O_NONBLOCK, dir_fd=fd)

    assert cache.evict(victim, at=act).reason is KeepReason.IN_USE
    os.close(fd)
    assert cache.has("e/sub/f")


def test_where_the_place_was_taken_the_new_one_stays_and_the_old_one_waits_for_its_user(cache):
    victim = cache.victim("e")
    fd = os.open(cache.path("e/sub"), os.O_RDONLY)
    holders = []

    def act():
        holder = process("fd = os.open(args[0], os.O_RDONLY)", os.readlink(f"/proc/self/fd/{fd}"))
        holders.append(holder)
        holder.__enter__()
        cache.put("e/new")

    outcome = cache.evict(victim, at=at_step("moved", act))
    assert outcome.reason is KeepReason.IN_USE
    assert not outcome.rolled_back
    assert os.listdir(cache.path("e")) == [b"new"]
    with process("fd = os.open(args[0] + b'/f', os.O_RDONLY)", os.readlink(f"/proc/self/fd/{fd}")):
        os.close(fd)
        [waiting] = cache.recover()
        assert waiting.fate == "kept in the trash: its place was taken, and somebody still uses it"
    holders[0].__exit__(None, None, None)
    [gone] = cache.recover()
    assert (gone.fate, gone.freed_bytes, gone.origin) == ("removed", 8192 + 4096, b"e")
    assert os.listdir(cache.path("e")) == [b"new"]


def test_a_stranger_found_after_the_point_of_no_return_is_not_unlinked(cache):
    victim = cache.victim("e")
    fd = os.open(cache.path("e/sub"), os.O_RDONLY)

    def act():
        os.close(os.open("stranger", os.O_CREAT | os.O_WRONLY, dir_fd=fd))

    outcome = cache.evict(victim, at=at_step("committed", act))
    assert isinstance(outcome, Failed)
    assert (outcome.errno, outcome.path) == (39, b"e")  # ENOTEMPTY
    assert os.listdir(fd) == ["stranger"]
    [kept] = cache.recover()
    assert kept.fate == "kept in the trash: something in it was never listed"
    assert os.listdir(fd) == ["stranger"]
    os.close(fd)


def test_an_attacker_who_swaps_directories_for_links_reaches_nothing_outside(cache, tmp_path):
    """A folder on the way, and the entry itself, are swapped for links to a treasure, as fast as can be."""
    treasure = tmp_path / "treasure"
    for folder in (treasure / "sub", tmp_path / "spare"):
        folder.mkdir(parents=True)
    for number in range(50):
        (treasure / "sub" / f"f{number}").write_text("gold")
    swap = """
set +e
while :; do
  mv -T cache/e/sub spare/s && ln -s ../../treasure/sub cache/e/sub
  rm -f cache/e/sub; mv -T spare/s cache/e/sub
  mv -T cache/e spare/e && ln -s ../treasure cache/e; rm -f cache/e; mv -T spare/e cache/e
done 2>/dev/null
"""
    with subprocess.Popen(["bash", "-c", swap], cwd=tmp_path, start_new_session=True) as attacker:
        try:
            for _ in range(60):
                for number in range(50):
                    try:
                        cache.put(f"e/sub/f{number}") if not os.path.islink(cache.path("e")) else None
                    except OSError:
                        break
                try:
                    cache.evict(cache.victim("e"))
                except OSError:
                    continue  # the test's own measuring met a swap
        finally:
            os.killpg(attacker.pid, 9)
    assert sorted(path.name for path in (treasure / "sub").iterdir()) == sorted(f"f{n}" for n in range(50))


def test_two_batches_at_once_never_take_anything_twice(cache):
    """Without the location's lock, which the caller should have: each entry is removed once."""
    for number in range(40):
        cache.put(f"{number}/f")
    victims = [cache.victim(str(number)) for number in range(40)]
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            removed = sum(isinstance(each, Removed) for each in cache.evict(*victims))
            os.write(write, b"%d" % removed)
        finally:
            os._exit(0)
    here = sum(isinstance(each, Removed) for each in cache.evict(*victims))
    os.waitpid(child, 0)
    os.close(write)
    there = int(os.read(read, 10))
    os.close(read)
    left = [number for number in range(40) if cache.has(str(number))]
    assert here + there + len(left) == 40
    assert all(cache.has(f"{number}/f") for number in left)
