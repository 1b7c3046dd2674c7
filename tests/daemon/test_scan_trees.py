"""Odd trees: deep ones, special files, names that are not text, parts that vanish or cannot be read."""

import ctypes
import errno
import os
import resource
import socket
import subprocess
import sys
import threading
from contextlib import nullcontext

import pytest

from cachewarden.errors import LocationUnavailableError
from cachewarden.inventory import Claim, Inventory, Split
from cachewarden.scan import scan
from cachewarden_policies.reasons import KeepReason


def measure(root, *paths: bytes, **more) -> Inventory:
    """Scan with a claim for each path, by default for each child."""
    found = paths or sorted(os.fsencode(name) for name in os.listdir(root))
    fd = os.open(root, os.O_RDONLY)
    try:
        return scan(fd, Split("plain", tuple(Claim(path, (path,)) for path in found)), **more)
    finally:
        os.close(fd)


def descend(root: bytes, levels: int, *, aside: bool = False) -> None:
    """A chain of directories with a file at its end; with `aside`, a second directory on each level."""
    here = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(b"d", dir_fd=here)
        if aside:
            os.mkdir(b"a", dir_fd=here)
            os.close(os.open(b"a/f", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        below = os.open(b"d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    fd = os.open(b"f", os.O_CREAT | os.O_WRONLY, dir_fd=here)
    os.write(fd, b"x" * 4096)
    os.close(fd)
    os.close(here)


@pytest.fixture
def deep_root(abyss):
    """A directory with an entry `e`, for trees of any depth."""
    root = abyss / "root"
    (root / "e").mkdir(parents=True)
    return root


@pytest.mark.parametrize("aside", [False, True])
def test_a_tree_of_any_depth_is_measured_with_few_descriptors(deep_root, aside):
    descend(os.fsencode(deep_root / "e"), 3000, aside=aside)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 100, hard))
    try:
        inventory = measure(deep_root)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    (entry,) = inventory.entries
    assert (inventory.complete, inventory.bytes) == (True, 4096)
    assert inventory.files == (3001 if aside else 1)
    assert entry.measure.inodes == (3001 + 1 + 3000 * 2 if aside else 3001 + 1)


def test_special_files_are_never_opened_and_count_as_inodes(tmp_path):
    root = tmp_path / "root"
    (root / "e").mkdir(parents=True)
    os.mkfifo(root / "e" / "fifo")
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.fspath(root / "e" / "s"))
    server.close()
    (root / "e" / "dangling").symlink_to("nowhere")
    (entry,) = measure(root).entries
    assert (entry.measure.inodes, entry.measure.files, entry.measure.bytes) == (4, 0, 0)


@pytest.mark.root
def test_devices_are_never_opened(tmp_path, needs_root):
    (tmp_path / "root" / "e").mkdir(parents=True)
    os.mknod(tmp_path / "root" / "e" / "tty", 0o020600, os.makedev(4, 63))
    os.mknod(tmp_path / "root" / "disk", 0o060600, os.makedev(254, 250))
    inventory = measure(tmp_path / "root")
    assert (inventory.complete, inventory.bytes) == (True, 0)
    assert [entry.measure.inodes for entry in inventory.entries] == [1, 2]


def test_symbolic_links_are_not_followed_wherever_they_lead(tmp_path):
    root = tmp_path / "root"
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "big").write_bytes(b"x" * 9000)
    (root / "e").mkdir(parents=True)
    (root / "e" / "loop").symlink_to(".")
    (root / "e" / "up").symlink_to("..")
    (root / "e" / "out").symlink_to(tmp_path / "outside")
    (root / "top").symlink_to(tmp_path / "outside")
    inventory = measure(root)
    assert inventory.bytes == 0
    assert [entry.measure.inodes for entry in inventory.entries] == [4, 1]


NAMES = (
    b"models--\xff\xfe",
    b"a\nERROR quota daemon disabled",
    b'q"uo\\te',
    "e\u0301".encode(),
    "\u00e9".encode(),
    b" lead",
    b"-rf",
    b"x" * 255,
)


def test_names_are_bytes(tmp_path):
    root = os.fsencode(tmp_path / "root")
    for name in NAMES:
        os.makedirs(os.path.join(root, name))
        with open(os.path.join(root, name, b"f"), "wb") as file:
            file.write(b"x" * 4096)
    inventory = measure(root, *NAMES)
    assert [entry.name for entry in inventory.entries] == sorted(NAMES)
    assert [entry.own_bytes for entry in inventory.entries] == [4096] * 8
    assert (inventory.bytes, inventory.foreign_bytes) == (32768, 0)


def test_files_that_come_and_go_during_the_walk_do_no_harm(tmp_path):
    root = tmp_path / "root"
    stay = root / "stay" / "f"
    stay.parent.mkdir(parents=True)
    stay.write_bytes(b"x" * 4096)
    script = """
import os, shutil, sys
number = 0
while True:
    number += 1
    base = os.path.join(sys.argv[1], f"e{number % 7}")
    os.makedirs(os.path.join(base, "sub/sub"), exist_ok=True)
    for each in range(20):
        open(os.path.join(base, "sub", f"f{each}"), "w").write("x")
    if number % 3 == 0:
        shutil.rmtree(base)
    elif number % 3 == 1:
        os.rename(os.path.join(base, "sub"), os.path.join(base, f"moved{number}"))
        os.symlink("/usr", os.path.join(base, "sub"))
        os.unlink(os.path.join(base, "sub"))
"""
    churn = subprocess.Popen([sys.executable, "-c", script, root])
    try:
        claims = [b"stay", *(b"e%d" % number for number in range(7))]
        for _ in range(150):
            inventory = measure(root, *claims)
            assert inventory.complete, inventory.unreadable
            entry = next(each for each in inventory.entries if each.name == b"stay")
            assert entry.own_bytes == 4096
    finally:
        churn.kill()
        churn.wait()


@pytest.mark.parametrize("lost", [False, True])
def test_a_deep_directory_that_is_moved_during_the_walk_is_never_lost_silently(deep_root, lost):
    descend(os.fsencode(deep_root / "e"), 400, aside=True)
    moved = []

    def move(files, size):
        if not moved:  # the walk is deep down now, and has closed what lies above
            moved.append((deep_root / "e/d/d").rename(deep_root.parent / "inner"))
            if lost:
                moved.append((deep_root / "e/d").rename(deep_root.parent / "outer"))

    inventory = measure(deep_root, progress=move)
    assert moved
    if inventory.complete:
        assert inventory.files == 401
    else:
        assert lost
        assert inventory.unreadable == ((b"e/d", errno.ESTALE),)
        assert inventory.entries[0].measure.obstacle is KeepReason.UNKNOWN


def test_an_unreadable_part_is_told_and_its_entry_is_unknown(tmp_path, as_nobody):
    root = tmp_path / "root"
    for name in ("open", "shut/inner", "listed"):
        (root / name).mkdir(parents=True)
        (root / name / "f").write_bytes(b"x" * 4096)
    (root / "shut" / "inner").chmod(0)
    (root / "listed").chmod(0o744)
    inventory = as_nobody(lambda: measure(root, b"open", b"shut", b"listed"))
    listed, opened, shut = inventory.entries
    assert not inventory.complete
    assert inventory.unreadable == ((b"listed", 13), (b"shut/inner", 13))
    assert opened.measure.obstacle is None
    assert (shut.measure.obstacle, listed.measure.obstacle) == (KeepReason.UNKNOWN, KeepReason.UNKNOWN)
    assert inventory.bytes == 4096


def test_an_unreadable_entry_and_an_unreadable_location_are_told_too(tmp_path, as_nobody):
    root = tmp_path / "root"
    (root / "e").mkdir(parents=True)
    (root / "e").chmod(0)
    inventory = as_nobody(lambda: measure(root, b"e"))
    assert (inventory.unreadable, inventory.entries[0].measure.obstacle) == (
        ((b"e", 13),),
        KeepReason.UNKNOWN,
    )
    assert (inventory.entries[0].ino, inventory.entries[0].measure.inodes) == ((root / "e").stat().st_ino, 1)
    fd = os.open(root, os.O_PATH)
    with pytest.raises(LocationUnavailableError):
        scan(fd, Split("plain"))
    os.close(fd)


def test_a_location_that_is_removed_is_unavailable_and_not_empty(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    fd = os.open(root, os.O_RDONLY)
    root.rmdir()
    with pytest.raises(LocationUnavailableError, match="removed"):
        scan(fd, Split("plain"))
    os.close(fd)


@pytest.mark.parametrize("cancel", [False, True])
def test_progress_tells_what_was_found_and_what_it_raises_ends_the_walk(tmp_path, cancel):
    for number in range(3):
        (tmp_path / f"root/e{number}").mkdir(parents=True)
        (tmp_path / f"root/e{number}/f").write_bytes(b"x" * 4096)
    told = []

    def progress(files, size):
        told.append((files, size))
        if cancel:
            raise KeyboardInterrupt

    root = os.open(tmp_path / "root", os.O_RDONLY)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(KeyboardInterrupt) if cancel else nullcontext():
        scan(root, Split("plain"), progress=progress)
    assert told[-1] == (3, 3 * 4096)
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(root)


@pytest.fixture
def as_nobody(tmp_path, needs_root):
    """Run something in a thread that is user 65534 for a while: file access follows the thread's own ids."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.getuid() and parent.stat().st_mode & 0o005 != 0o005:
            parent.chmod(parent.stat().st_mode | 0o005)

    def run(work):
        result = []

        def inside():
            # Unlike setuid, setfsuid(2) changes the calling thread alone.
            libc = ctypes.CDLL(None)
            libc.setfsgid(65534)
            libc.setfsuid(65534)
            result.append(work())

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        return result[0]

    return run
