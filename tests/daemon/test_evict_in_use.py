"""Whoever uses an entry, in whatever way and container: it stays, untouched, until he is gone."""

import os
import shutil
import subprocess
import tempfile

import pytest
from tests.daemon.evicting import Cache, at_step, process

from cachewarden.report import Removed, Spared
from cachewarden_policies.reasons import KeepReason

OPEN = "fd = os.open(args[0], os.O_RDONLY)"
WRITE = "fd = os.open(args[0], os.O_WRONLY)"
MAPPED = """
import ctypes  # Python's own mmap keeps a descriptor
mmap = ctypes.CDLL(None).mmap; mmap.restype = ctypes.c_void_p
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
fd = os.open(args[0], os.O_RDONLY)
assert mmap(None, 4096, 1, 2, fd, 0) not in (None, 2**64 - 1)
os.close(fd)
"""
IN_FLIGHT = """
import socket
left, right = socket.socketpair()
fd = os.open(args[0], os.O_RDONLY); socket.send_fds(left, [b'x'], [fd]); os.close(fd)
"""
DIRECTORY = "fd = os.open(os.path.dirname(args[0]), os.O_RDONLY)"
CWD = "os.chdir(os.path.dirname(args[0]))"
THREAD_ONLY = """
import ctypes, threading
def alone():
    assert ctypes.CDLL(None).unshare(0x400) == 0      # CLONE_FILES: a table of its own
    global fd
    fd = os.open(os.path.dirname(args[0]), os.O_RDONLY)
    ready.set(); threading.Event().wait()
ready = threading.Event(); threading.Thread(target=alone, daemon=True).start(); ready.wait()
"""
THREAD_CWD = """
import ctypes, threading
def alone():
    assert ctypes.CDLL(None).unshare(0x200) == 0      # CLONE_FS: a cwd of its own
    os.chdir(os.path.dirname(args[0])); ready.set(); threading.Event().wait()
ready = threading.Event(); threading.Thread(target=alone, daemon=True).start(); ready.wait()
"""
LEADER_GONE = """
import ctypes, threading, time
def stays():
    fd = os.open(os.path.dirname(args[0]), os.O_RDONLY); ready.set(); time.sleep(.5)
    print('ready', flush=True)
    time.sleep(120)
ready = threading.Event(); threading.Thread(target=stays).start(); ready.wait()
ctypes.CDLL(None).syscall(60, 0)                      # SYS_exit: this thread only
"""

KINDS = {
    "open": (OPEN, "open"),
    "open for writing": (WRITE, "open"),
    "mapped with the descriptor closed": (MAPPED, "mapped"),
    "in flight over a socket": (IN_FLIGHT, None),
    "an open directory": (DIRECTORY, "directory"),
    "standing in it": (CWD, "cwd"),
    "an open directory of one thread": (THREAD_ONLY, "directory"),
    "one thread standing in it": (THREAD_CWD, "cwd"),
    "an open directory of threads without a leader": (LEADER_GONE, "directory"),
}


@pytest.fixture
def cache(tmp_path):
    cache = Cache(tmp_path / "cache")
    cache.put("e/sub/f", 8192)
    cache.put("e/g")
    cache.put("n/f")
    yield cache
    cache.sweep()


def stays_and_neighbour_goes(cache, reason=KeepReason.IN_USE):
    before = cache.tree("e")
    spared, removed = cache.evict(cache.victim("e"), cache.victim("n"))
    assert isinstance(spared, Spared)
    assert (spared.reason, spared.rolled_back) == (reason, False)
    assert cache.tree("e") == before
    assert isinstance(removed, Removed)
    return spared


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_in_use_stays_and_goes_once_the_holder_is_gone(cache, kind):
    code, shown = KINDS[kind]
    if code is LEADER_GONE and os.uname().machine != "x86_64":
        pytest.skip("the number of exit(2) in the recipe is that of x86_64")
    with process(code, cache.path("e/sub/f")) as holder:
        spared = stays_and_neighbour_goes(cache)
        if shown:
            assert (shown, holder.pid) in [(each.kind, each.pid) for each in spared.holders]
            assert all(each.name and each.user for each in spared.holders)
    assert isinstance(cache.evict(cache.victim("e")), Removed)


def test_a_program_that_runs_from_the_entry_keeps_it(cache):
    program = cache.path("e/sleep")
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([program, "120"]) as running:
        try:
            while os.readlink(f"/proc/{running.pid}/exe") != os.fsdecode(program):
                pass
            stays_and_neighbour_goes(cache)
        finally:
            running.kill()


def test_another_name_of_the_file_is_the_file(cache, tmp_path):
    os.link(cache.path("e/sub/f"), tmp_path / "elsewhere")
    with process(OPEN, tmp_path / "elsewhere"):
        stays_and_neighbour_goes(cache)


def test_a_path_descriptor_that_cannot_read_does_not_keep_an_entry(cache):
    with process("fd = os.open(args[0], os.O_PATH)", cache.path("e/sub/f")):
        assert isinstance(cache.evict(cache.victim("e")), Removed)


def test_use_of_shared_data_is_use_of_the_entry(cache):
    cache.put("store/payload")
    with process(MAPPED, cache.path("store/payload")):
        for field in ("shared_in_place", "shared_out"):
            outcome = cache.evict(cache.victim("e", **{field: (b"store/payload",)}))
            assert outcome.reason is KeepReason.IN_USE
    assert cache.has("store/payload")
    assert cache.has("e/sub/f")


def test_data_shared_by_two_victims_keeps_both_while_it_is_used(cache):
    os.link(cache.path("e/sub/f"), cache.path("n/link"))
    with process(OPEN, cache.path("n/link")):
        outcomes = cache.evict(cache.victim("e"), cache.victim("n"))
    assert [outcome.reason for outcome in outcomes] == [KeepReason.IN_USE] * 2
    assert cache.has("n/f")


def test_an_entry_in_use_with_more_files_than_descriptors_stays(cache):
    for number in range(200):
        cache.put(f"e/{number}")
    before = cache.tree("e")
    with process(MAPPED, cache.path("e/sub/f")) as holder:
        spared = cache.evict(cache.victim("e"), room=64)
        assert spared.reason is KeepReason.IN_USE
        assert [(each.kind, each.pid) for each in spared.holders] == [("mapped", holder.pid)]
    with process(DIRECTORY, cache.path("e/sub/f")):
        assert cache.evict(cache.victim("e"), room=64).reason is KeepReason.IN_USE
    assert cache.tree("e") == before


@pytest.mark.root
def test_containers_are_seen_whatever_path_they_know_it_by(cache, tmp_path, needs_root):
    """Another mount namespace, by a bind mount and through the lower layer of an overlay."""
    cache.put("o/f", 8192)
    for name in ("up", "work", "merged", "bound"):
        (tmp_path / name).mkdir()
    unshare = ("unshare", "-m", "--propagation", "private")
    bind = f"os.system(b'mount --bind %b {tmp_path}/bound' % args[0])\n"
    layers = f"lowerdir=%b,upperdir={tmp_path}/up,workdir={tmp_path}/work"
    overlay = f"os.system(b'mount -t overlay overlay -o {layers} {tmp_path}/merged' % args[0])\n"
    before = cache.tree("o"), cache.tree("e")
    with (
        process(bind + f"fd = open('{tmp_path}/bound/sub/f')", cache.path("e"), wrap=unshare),
        process(overlay + f"fd = open('{tmp_path}/merged/f')", cache.path("o"), wrap=unshare),
    ):
        outcomes = cache.evict(cache.victim("e"), cache.victim("o"), cache.victim("n"))
        assert [each.reason for each in outcomes[:2]] == [KeepReason.MOUNTPOINT] * 2
        assert isinstance(outcomes[2], Removed)
    assert (cache.tree("o"), cache.tree("e")) == before


@pytest.mark.root
@pytest.mark.parametrize("way", ["bind", "overlay"])
def test_a_container_that_has_all_of_the_location_mounted_holds_what_it_has_open(
    cache, tmp_path, needs_root, way
):
    for name in ("up", "work", "seen"):
        (tmp_path / name).mkdir()
    mounts = {
        "bind": f"mount --bind %b {tmp_path}/seen",
        "overlay": f"mount -t overlay overlay -o lowerdir=%b,upperdir={tmp_path}/up,workdir={tmp_path}/work "
        f"{tmp_path}/seen",
    }
    code = f"os.system(b'{mounts[way]}' % args[0])\nfd = open('{tmp_path}/seen/e/sub/f')"
    with process(code, cache.root, wrap=("unshare", "-m", "--propagation", "private")):
        stays_and_neighbour_goes(cache)


@pytest.mark.root
def test_mounts_inside_an_entry_keep_it_whole_and_what_is_mounted_stays(cache, tmp_path, needs_root):
    """A bind mount of the same filesystem has the same device number and is no mount to os.path.ismount."""
    (tmp_path / "treasure").mkdir()
    (tmp_path / "treasure" / "gold").write_text("au")
    for name in ("m", "t", "one"):
        os.mkdir(cache.path(f"e/{name}"))
    cache.put("file/f")
    before = cache.tree("e")
    program = f"""
import sys; sys.path[:0] = {[os.getcwd(), *os.environ.get("PYTHONPATH", "").split(":")]!r}
from tests.daemon.evicting import Cache
cache = Cache({os.fsdecode(cache.root)!r})
victims = cache.victim('e'), cache.victim('file'), cache.victim('n')
os.system('mount --bind {tmp_path}/treasure {os.fsdecode(cache.root)}/e/m')
os.system('mount -t tmpfs none {os.fsdecode(cache.root)}/e/t')
os.system('mount --bind {tmp_path}/treasure/gold {os.fsdecode(cache.root)}/file/f')
print([getattr(each, 'reason', type(each).__name__) for each in cache.evict(*victims)], flush=True)
assert os.path.exists('{os.fsdecode(cache.root)}/e/m/gold')
"""
    command = ["unshare", "-m", "--propagation", "private", "python3", "-c", "import os\n" + program]
    command[4] = os.sys.executable
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # The bound file is another inode than the one that was measured: that is seen even earlier.
    assert [word in done.stdout for word in ("MOUNTPOINT", "CHANGED", "Removed")] == [True] * 3
    assert (tmp_path / "treasure" / "gold").read_text() == "au"
    assert cache.tree("e") == before
    assert cache.has("file/f")


@pytest.mark.root
def test_files_of_others_without_the_right_to_lease_them_are_unknown(needs_root):
    """A holder that cannot be inspected and a lease that is refused: kept, and said to be unknown."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        cache = Cache(os.path.join(directory, "cache"))
        os.chmod(os.path.dirname(cache.put("e/f")), 0o777)
        victim = cache.victim("e")
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setresgid(2001, 2001, 2001)
                os.setresuid(2001, 2001, 2001)
                os.write(write, cache.evict(victim).reason.encode())
            finally:
                os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        with open(read, "rb") as said:
            assert said.read() == b"unknown"
        assert cache.has("e/f")


def test_under_a_churn_of_processes_a_used_entry_stays_every_time_and_the_others_go(cache):
    churn = ["bash", "-c", "while :; do /bin/true; done"]
    with subprocess.Popen(churn) as one, subprocess.Popen(churn) as other:
        try:
            with process(DIRECTORY, cache.path("e/sub/f")):
                for number in range(40):
                    cache.put(f"{number}/f")
                    spared, removed = cache.evict(cache.victim("e"), cache.victim(str(number)))
                    assert spared.reason is KeepReason.IN_USE
                    assert isinstance(removed, Removed)
        finally:
            one.kill()
            other.kill()


def test_children_that_we_start_ourselves_do_not_keep_our_locks(cache):
    """A child has all descriptors of its parent until it has executed something."""
    before = cache.tree("e")
    with process(OPEN, cache.path("e/sub/f")):
        for _ in range(3):
            reader, writer = os.pipe()

            def fork(reader=reader):
                if os.fork() == 0:
                    os.read(reader, 1)
                    os._exit(0)

            spared = cache.evict(cache.victim("e"), at=at_step("opened", fork))
            assert spared.reason is KeepReason.IN_USE
            os.write(writer, b"x")
            os.wait()
            os.close(reader)
            os.close(writer)
    assert cache.tree("e") == before
