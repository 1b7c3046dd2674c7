"""A user does harm to the service that evicts from his cache as root: it costs an entry, never the pass."""

import ctypes
import fcntl
import itertools
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.daemon.evicting import Cache, at_step
from tests.daemon.hostility import MALLORY, evict_beside, locked, place, user, within

from cachewarden.report import Removed, Spared
from cachewarden_policies.reasons import KeepReason

pytestmark = pytest.mark.root
__all__ = ["place"]


def test_pipes_and_devices_hang_nothing_and_keep_only_their_entry(place):
    makers = {
        "fifo": os.mkfifo,
        "device": lambda path: os.mknod(path, 0o20666, os.makedev(1, 3)),
        "disk": lambda path: os.mknod(path, 0o60666, os.makedev(7, 250)),
        "socket": lambda path: os.mknod(path, 0o140666),
    }
    for name, make in makers.items():
        place.put(f"{name}/f")
        make(place.cache.path(f"{name}/odd"))
        make(place.cache.path(f"{name}-itself"))
    place.put("n/f")
    names = [*makers, *(f"{name}-itself" for name in makers), "n"]
    with within(5):
        outcomes = place.cache.evict(*map(place.cache.victim, names))
    assert outcomes[:-1] == [Spared(KeepReason.UNKNOWN)] * 8
    assert isinstance(outcomes[-1], Removed)


def test_a_file_that_becomes_a_pipe_and_back_hangs_nothing(place):
    path, other = place.put("e/f"), place.cache.path("pipe")

    def swap():
        with suppress(OSError):
            os.mkfifo(other)
        with suppress(OSError):
            os.rename(other, path)
        with suppress(OSError):
            os.unlink(path)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))

    with user(swap):
        end = time.monotonic() + 2
        while time.monotonic() < end:
            with suppress(OSError), within(5):
                place.put("n/f")
                assert isinstance(place.evict("e", "n")[1], Removed)
    place.cache.recover()


@pytest.mark.parametrize("kind", [fcntl.F_RDLCK, fcntl.F_WRLCK])
def test_a_user_who_holds_a_lease_keeps_his_entry_and_delays_nobody(place, kind):
    path = place.put("e/f")
    place.put("n/f")

    def hold():
        fd = os.open(path, os.O_RDONLY if kind == fcntl.F_RDLCK else os.O_RDWR)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)

    with user(hold, again=False), within(5):
        spared, removed = place.evict("e", "n")
        assert spared.reason is KeepReason.IN_USE
        assert isinstance(removed, Removed)
    assert isinstance(place.evict("e"), Removed)


def test_a_user_who_breaks_our_leases_on_purpose_costs_his_entry_and_not_the_pass(place):
    paths = [place.put(f"e/{number}") for number in range(20)]

    def storm():
        for path, flags in itertools.product(paths, (os.O_RDONLY, os.O_WRONLY)):
            with suppress(OSError):
                os.close(os.open(path, flags | os.O_NONBLOCK))

    with user(storm), within(60):
        for number in range(8):
            place.put(f"n{number}/f")
            before = place.cache.tree("e")
            mine, other = place.evict("e", f"n{number}")
            assert isinstance(other, Removed)
            if isinstance(mine, Removed):  # he was too slow: make the storm's target anew
                paths[:] = [place.put(f"e/{number}") for number in range(20)]
            else:
                assert place.cache.tree("e") == before


def test_a_user_who_fills_the_trash_with_junk_and_forged_names_stops_nothing(place):
    """Junk, and names of our form with numbers of any size: nothing of it stops the next eviction."""
    place.put("e/f")
    with place.cache.trash() as trash:
        trash.places[0].refused = 1
        made = trash.make()
        location = trash.location
        assert os.stat(made.path).st_uid == MALLORY
        forged = [b"m-%b-%b-0-x" % (location, b"f" * 200), b"p-%b-1-%b-x" % (location, b"9" * 200)]
        forged += [b"o-%b-1-0" % location, b"s-%b-2-0-e" % location, b"m-%b-3-0-..%%2f..%%2fz" % location]

        def fill():
            for name in (*forged, *(b"junk%d" % number for number in range(2000))):
                os.close(os.open(os.path.join(made.path, name), os.O_CREAT | os.O_WRONLY))

        with user(fill, again=False):
            pass
        assert len(os.listdir(made.path)) == 2000 + len(forged)
    with within(10):
        assert isinstance(evict_beside(place), Removed)
    assert not place.cache.has("e")
    assert place.unharmed
    shutil.rmtree(made.path)


@pytest.mark.parametrize("quiet", [False, True], ids=["", "hiding"])
def test_a_users_lock_on_the_locations_root_stops_nothing(place, quiet):
    """Anybody who may read it could take one, for ever. Hiding: /proc says that root owns his process."""
    place.put("e/f")

    def hold():
        if quiet:
            ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE
        locked(place.cache.root)()
        fd = os.open(place.cache.root, os.O_RDONLY)
        fcntl.lockf(fd, fcntl.LOCK_SH)
        signal_held.append(fd)

    signal_held = []
    with user(hold, again=False):
        assert isinstance(place.evict("e"), Removed)


def test_a_users_lock_below_the_root_keeps_what_is_below_it(place):
    for name in ("a/e", "a/f", "n"):
        place.put(f"{name}/x")
    with user(locked(place.cache.path("a")), again=False):
        outcomes = place.evict("a/e", "a/f", "n")
    assert [getattr(each, "reason", None) for each in outcomes] == [KeepReason.LOCKED] * 2 + [None]


@pytest.mark.parametrize("again", [True, False], ids=["roots too", "of root alone"])
def test_roots_lock_on_the_locations_root_keeps_all_of_it(place, again):
    """Also beside one of the user's: both may hold a shared lock."""
    place.put("e/f")
    fd = os.open(place.cache.root, os.O_RDONLY)

    def share():
        other = os.open(place.cache.root, os.O_RDONLY)
        fcntl.flock(other, fcntl.LOCK_SH)

    child = os.fork()
    if child == 0:
        fcntl.flock(fd, fcntl.LOCK_SH)
        time.sleep(120)
        os._exit(0)
    os.close(fd)
    try:
        while f":{os.stat(place.cache.root).st_ino} " not in Path("/proc/locks").read_text():
            time.sleep(0.01)
        if again:
            with user(share, again=False):
                outcome = place.evict("e")
        else:
            outcome = place.evict("e")
        assert outcome.reason is KeepReason.LOCKED
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert isinstance(place.evict("e"), Removed)


@pytest.mark.parametrize("room", [8192, 64], ids=["at once", "in rounds"])
def test_a_tree_of_3000_levels_is_put_back_whole_and_goes_whole(abyss, room):
    cache = Cache(abyss / "cache")
    cache.put("e/f")
    fd = os.open(cache.path("e"), os.O_RDONLY)
    name = "d" * 255
    for _ in range(3000):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("deepest", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    linked = []

    def link():
        os.link("deepest", "more", src_dir_fd=fd, dst_dir_fd=fd)
        linked.append("more")

    # On a machine that tests keep busy, what takes longer than a second is given up or put back; and a
    # service that another test started looks up, for a moment, which directories were made here.
    for _ in range(20):
        outcome = cache.evict(cache.deep_victim("e"), room=room, at=at_step("moved", link))
        if linked:
            break
    assert outcome.rolled_back
    assert "more" in os.listdir(fd)
    os.unlink("more", dir_fd=fd)
    os.close(fd)
    for _ in range(20):
        outcome = cache.evict(cache.deep_victim("e"), room=room)
        if isinstance(outcome, Removed):
            break
        assert outcome.reason in (KeepReason.UNKNOWN, KeepReason.IN_USE)
    assert isinstance(outcome, Removed)
    assert os.listdir(cache.root) == []
