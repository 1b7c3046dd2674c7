"""Where leases do not tell all, a second witness must agree; where neither tells all, entries stay."""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from tests.daemon.evicting import Cache, process

from cachewarden.clock import SetClock
from cachewarden.evict import Evictor
from cachewarden.evict.fallback import Fallback, fallback_for
from cachewarden.evict.trial import probe_file, try_leases
from cachewarden.holders import Machine, uses
from cachewarden.kernel.handles import Handles
from cachewarden.kernel.layers import in_upper_layer_alone
from cachewarden.report import Removed, Spared
from cachewarden_policies.reasons import KeepReason

OPEN = "fd = os.open(args[0], os.O_RDONLY)"
MAPPED = """
import ctypes  # Python's own mmap keeps a descriptor
mmap = ctypes.CDLL(None).mmap; mmap.restype = ctypes.c_void_p
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
fd = os.open(args[0], os.O_RDONLY)
assert mmap(None, 4096, 1, 2, fd, 0) not in (None, 2**64 - 1)
os.close(fd)
"""
MAPPED_AND_LEADER_GONE = f"""
import threading, time
def stays():
    ready.wait(); time.sleep(.5)
    print('ready', flush=True)
    time.sleep(120)
ready = threading.Event(); threading.Thread(target=stays).start()
{MAPPED}
ready.set(); ctypes.CDLL(None).syscall(60, 0)         # SYS_exit: this thread only
"""
IN_FLIGHT = """
import socket
left, right = socket.socketpair()
fd = os.open(args[0], os.O_RDONLY); socket.send_fds(left, [b'x'], [fd]); os.close(fd)
"""
WAYS = {"open": OPEN, "mapped, descriptor closed": MAPPED, "in flight over a socket": IN_FLIGHT}
UNKNOWN = Spared(KeepReason.UNKNOWN)
DOUBTED = {"lease_trusted": False}


class Readable(Machine):
    """This machine without its first process, which some sandboxes hide even from root.

    `after_first` is called once, when the first look is over.
    """

    def __init__(self, after_first=lambda: None):
        super().__init__()
        self._then = [after_first]

    def using(self, inodes):
        seen = super().using(inodes)
        seen.unreadable.discard(1)
        if self._then:
            self._then.pop()()
        return seen


pytestmark = pytest.mark.root


@contextmanager
def mounted(point, *options):
    os.makedirs(point, exist_ok=True)
    subprocess.run(["mount", *options, point], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", point], check=True)


@contextmanager
def overlay(tmp_path):
    """An overlay over a lower directory with one entry `low`; its `Cache`, and the layers' paths."""
    base = tmp_path / "layers"
    with mounted(base, "-t", "tmpfs", "tmpfs"):
        for name in ("lower/low", "lower/merged", "upper", "work"):
            (base / name).mkdir(parents=True)
        (base / "lower/low/f").write_bytes(b"x" * 4096)
        (base / "lower/merged/f").write_bytes(b"x" * 4096)
        (base / "lower/copied").write_bytes(b"x" * 4096)
        layers = f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work"
        with mounted(tmp_path / "over", "-t", "overlay", "-o", layers, "overlay"):
            yield Cache(tmp_path / "over", **DOUBTED, surroundings=Readable(), clock=SetClock()), base


@pytest.fixture
def over(tmp_path, needs_root):
    """A location on an overlay with the entry `e` in the upper layer, and a neighbour `n`."""
    with overlay(tmp_path) as (cache, _):
        cache.put("e/sub/f", 8192)
        cache.put("e/g")
        cache.put("n/f")
        yield cache


def test_on_an_overlay_a_lease_is_granted_while_the_file_is_mapped_and_so_proves_nothing(over):
    with over.trash() as trash:
        place = trash.make()
        with probe_file(place.fd) as name:
            trial = try_leases(name, place.fd)
        assert (trial.errno, trial.sees_open, trial.sees_mapping) == (0, True, False)
        assert not trial.proves_all
        assert os.listdir(place.fd) == []


def test_what_is_in_the_upper_layer_alone_goes_when_nobody_uses_it(over):
    outcome = over.evict(over.victim("e"))
    assert isinstance(outcome, Removed)
    assert outcome.freed_bytes >= 12288
    assert not over.has("e")
    assert over.has("n/f")


@pytest.mark.parametrize("way", WAYS)
def test_what_somebody_uses_on_an_overlay_stays_and_its_neighbour_goes(over, way):
    before = over.tree("e")
    with process(WAYS[way], over.path("e/sub/f")) as holder:
        kept, gone = over.evict(over.victim("e"), over.victim("n"))
        assert isinstance(gone, Removed)
        assert kept.reason is KeepReason.IN_USE
        if way != "in flight over a socket":
            assert holder.pid in [each.pid for each in kept.holders]
        assert over.tree("e") == before
    assert isinstance(over.evict(over.victim("e")), Removed)


def test_a_mapping_whose_process_has_lost_its_first_thread_is_seen(over):
    with process(MAPPED_AND_LEADER_GONE, over.path("e/sub/f")):
        assert over.evict(over.victim("e")).reason is KeepReason.IN_USE


def test_a_mapping_in_another_mount_namespace_is_seen(over, tmp_path):
    move = ["unshare", "-m", "--propagation", "private", "sh", "-c", 'mount --move "$0" /mnt; exec "$@"']
    with process(MAPPED, "/mnt/e/sub/f", wrap=[*move, tmp_path / "over"]):
        assert over.evict(over.victim("e")).reason in (KeepReason.IN_USE, KeepReason.MOUNTPOINT)


def test_a_mapping_that_was_made_after_the_first_look_is_seen_by_the_second(over):
    """The lease is granted all the same: it sees no mapping here."""
    held = process(MAPPED, over.path("e/sub/f"))
    before = over.tree("e")
    try:
        outcome = over.evict(over.victim("e"), surroundings=Readable(held.__enter__))
    finally:
        held.__exit__(None, None, None)
    assert outcome.reason is KeepReason.IN_USE
    assert outcome.rolled_back
    assert over.tree("e") == before


@pytest.mark.parametrize("name", ["low", "low/f", "merged", "copied", "link"])
def test_what_a_lower_layer_has_a_part_of_stays(tmp_path, needs_root, name):
    with overlay(tmp_path) as (cache, base):
        os.symlink("nowhere", base / "lower/link")
        with open(cache.path("copied"), "ab") as file:
            file.write(b"more")  # copied up now
        cache.put("merged/new")
        assert not cache.has(".cachewarden-trash")
        layers = sorted(os.listdir(base / "upper")), cache.tree()
        assert cache.evict(cache.victim(name)) == UNKNOWN
        assert (sorted(os.listdir(base / "upper")), cache.tree()) == layers


def test_a_handle_tells_the_upper_layer_from_the_lower_ones(tmp_path, needs_root):
    with overlay(tmp_path) as (cache, base):
        cache.put("up/f")
        cache.put("merged/new")
        over, upper = os.open(cache.root, os.O_RDONLY), os.open(base / "upper", os.O_RDONLY)
        handles = Handles()
        alone = {name: in_upper_layer_alone(handles.of(name, over)) for name in (b"up", b"low", b"merged")}
        alone |= {name: in_upper_layer_alone(handles.of(name, over)) for name in (b"up/f", b"merged/new")}
        assert alone == {b"up": True, b"up/f": True, b"merged/new": True, b"low": False, b"merged": False}
        assert not in_upper_layer_alone(handles.of(b"up", upper))  # of a filesystem that has no layers
        assert not in_upper_layer_alone(b"")
        os.close(over)
        os.close(upper)


def test_an_entry_that_is_too_large_to_be_held_at_once_stays(over):
    for number in range(40):
        over.put(f"big/{number}")
    assert over.evict(over.victim("big"), room=16) == UNKNOWN


def test_a_plan_with_leases_says_the_same_and_leaves_nothing(over):
    before = over.tree()
    with (
        process(MAPPED, over.path("e/g")),
        over.trash() as trash,
        Evictor(trash, Readable(), now_ns=0, clock=SetClock(), **DOUBTED) as evictor,
    ):
        kept, goes = evictor.probe_all([over.victim("e"), over.victim("n")])
    assert (kept.reason, goes) == (KeepReason.IN_USE, None)
    assert over.tree() == before


def test_one_process_that_cannot_be_looked_at_makes_the_answer_unknown(over):
    class Hidden(Readable):
        def using(self, inodes):
            seen = super().using(inodes)
            seen.unreadable.add(4711)
            return seen

    assert over.evict(over.victim("e"), surroundings=Hidden()) == UNKNOWN
    with process(MAPPED, over.path("e/g")):  # who is seen is seen
        assert over.evict(over.victim("e"), surroundings=Hidden()).reason is KeepReason.IN_USE


LOOK = "from cachewarden.holders import uses; seen = uses(set()); print(seen.all_visible, *seen.unreadable)"


def test_without_the_right_to_trace_others_a_look_says_whom_it_missed(needs_root):
    with process("") as other:
        command = ["setpriv", "--bounding-set", "-sys_ptrace", sys.executable, "-c", LOOK]
        visible, *missed = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
        assert visible == "True"
        assert str(other.pid) in missed


def test_in_a_pid_namespace_of_our_own_a_look_says_that_it_does_not_see_all(needs_root):
    for proc in ([], ["--mount-proc"]):
        command = ["unshare", "-pf", *proc, sys.executable, "-c", LOOK]
        said = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
        assert said[0] == "False"


def test_a_look_finds_open_and_mapped_files_by_inode(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"x" * 4096)
    inodes = {name: (os.stat(tmp_path / name).st_dev, os.stat(tmp_path / name).st_ino) for name in "abc"}
    with process(OPEN, tmp_path / "a") as opener, process(MAPPED, tmp_path / "b") as mapper:
        found = uses(set(inodes.values())).users
    assert [(each.kind, each.pid) for each in found[inodes["a"]]] == [("open", opener.pid)]
    assert [(each.kind, each.pid) for each in found[inodes["b"]]] == [("mapped", mapper.pid)]
    assert inodes["c"] not in found


def test_the_second_witness_is_asked_where_leases_are_doubted_and_never_stands_alone(tmp_path, needs_root):
    """On a filesystem of its own, as another local one would be."""
    doubted = {**DOUBTED, "fallback": Fallback(), "clock": SetClock()}
    cache = Cache(tmp_path / "cache", surroundings=Readable(), **doubted)
    cache.put("e/f")
    cache.put("n/f")
    with process(IN_FLIGHT, cache.path("e/f")):
        kept, gone = cache.evict(cache.victim("e"), cache.victim("n"))
    assert kept.reason is KeepReason.IN_USE  # what no look into /proc sees
    assert isinstance(gone, Removed)
    with cache.trash() as trash:
        for place in trash.places:
            place.refused = 13  # nowhere to try a lease
        with Evictor(trash, Readable(), now_ns=0, **doubted) as evictor:
            assert evictor.evict(cache.victim("e")) == UNKNOWN


def test_only_local_filesystems_have_a_fallback_and_only_for_root(tmp_path, needs_root):
    fds = {path: os.open(path, os.O_RDONLY) for path in ("/proc", "/sys", str(tmp_path))}
    assert [fallback_for(fd) for fd in fds.values()] == [None] * 3  # tmp_path: leases are trusted there
    with overlay(tmp_path) as (cache, _):
        fds["over"] = os.open(cache.root, os.O_RDONLY)
        assert fallback_for(fds["over"]) == Fallback(layered=True)
        os.seteuid(65534)
        try:
            assert fallback_for(fds["over"]) is None
        finally:
            os.seteuid(0)
        os.close(fds.pop("over"))
    for fd in fds.values():
        os.close(fd)
