"""Every filesystem that caches live on, with room and without: the full disk is when eviction is needed."""

import os
import subprocess
from contextlib import suppress

import pytest
from tests.daemon.evicting import Cache, at_step, process

from cachewarden.evict import Fate
from cachewarden.evict.trash import Piece
from cachewarden.kernel.rename import rename_back, rename_noreplace, rename_plainly, rename_to_unique
from cachewarden.kernel.syncfs import syncfs
from cachewarden.report import Removed
from cachewarden_policies.reasons import KeepReason

pytestmark = pytest.mark.root

FILESYSTEMS = {
    "ext4": ("64M", ["mkfs.ext4", "-q", "-F"]),
    "xfs": ("320M", ["mkfs.xfs", "-q", "-f"]),
    "btrfs": ("128M", ["mkfs.btrfs", "-q", "-f"]),
    "tmpfs": ("64M", None),
}


@pytest.fixture(params=FILESYSTEMS)
def filesystem(request, tmp_path, needs_root):
    """A small filesystem of each kind, mounted for the test."""
    size, make = FILESYSTEMS[request.param]
    top, image = tmp_path / "top", tmp_path / "image"
    top.mkdir()
    if make is None:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes=2000", "none", top]
    else:
        subprocess.run(["truncate", "-s", size, image], check=True)
        subprocess.run([*make, image], check=True)
        mount = ["mount", "-o", "loop", image, top]
    subprocess.run(mount, check=True)
    yield os.fsencode(top)
    subprocess.run(["umount", "-l", top], check=True)


def fill(top):
    """Fill a filesystem to the last block, and take the last inode where their number is fixed."""
    for size in (1 << 20, 65536, 4096, 512):
        with suppress(OSError), open(top + b"/fill%d" % size, "wb", buffering=0) as file:
            while True:
                file.write(b"\1" * size)
    if os.statvfs(top).f_files:
        with suppress(OSError):
            for number in range(200_000):
                os.close(os.open(top + b"/i%d" % number, os.O_CREAT | os.O_WRONLY))
    assert os.statvfs(top).f_bavail < 256


def test_entries_go_and_used_ones_stay(filesystem):
    cache = Cache(filesystem + b"/a/cache")
    for name in ("e", "used", "stood"):
        cache.put(f"{name}/sub/f", 100_000)
    before = cache.tree("used"), cache.tree("stood")
    with (
        process("fd = os.open(args[0], os.O_RDONLY)", cache.path("used/sub/f")) as reader,
        process("os.chdir(args[0])", cache.path("stood/sub")),
    ):
        outcomes = cache.evict(*(cache.victim(name) for name in ("e", "used", "stood")))
        assert isinstance(outcomes[0], Removed)
        assert outcomes[0].freed_bytes >= 98_304
        assert [each.reason for each in outcomes[1:]] == [KeepReason.IN_USE] * 2
        assert [each.pid for each in outcomes[1].holders] == [reader.pid]
    assert (cache.tree("used"), cache.tree("stood")) == before


def test_a_trash_that_another_pass_removed_is_made_again(filesystem):
    cache = Cache(filesystem + b"/a/cache")
    cache.put("e/f")
    with cache.trash() as first, cache.trash() as second:
        first.make()
        second.make()
        first.places[0].remove_if_empty()
        assert second.make().fd is not None
        assert isinstance(cache.evict(cache.victim("e")), Removed)


@pytest.mark.parametrize("kind", ["directory", "several paths", "long name", "single file"])
def test_on_a_full_disk_entries_go_all_the_same(filesystem, kind):
    cache = Cache(filesystem + b"/cache")
    names = {"long name": ["x" * 255], "several paths": ["a/w", "b/p", "b/q"]}.get(kind, ["e"])
    for name in names:
        cache.put(name if kind == "single file" else f"{name}/f", 300_000)
    fill(filesystem)
    victim = cache.victim(*names, husks=(b"a", b"b") if len(names) > 1 else ())
    outcome = cache.evict(victim)
    assert isinstance(outcome, Removed)
    assert outcome.freed_bytes >= 294_912 * len(names)
    assert cache.tree() == {}


@pytest.mark.parametrize("crash", ["moved", "verified", "committed"])
def test_on_a_full_disk_a_crash_is_recovered_from(filesystem, crash):
    cache = Cache(filesystem + b"/cache")
    for name in ("a/w", "b/p"):
        cache.put(f"{name}/f", 300_000)
    fill(filesystem)
    before = cache.tree()
    victim = cache.victim("a/w", "b/p")
    child = os.fork()
    if child == 0:
        cache.evict(victim, at=at_step(crash, lambda: os.kill(os.getpid(), 9)))
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert not cache.has("a/w")
    if filesystem_name(filesystem) in ("ext4", "xfs"):  # not even a directory can be made
        letter = b"p" if crash == "committed" else b"m"
        assert [name[:6] for name in os.listdir(cache.path("a"))] == [b".cw-" + letter + b"1"]
    cache.recover(b"a", b"b")
    if crash == "committed":
        assert sorted(cache.tree()) == [b"a", b"b"]
    else:
        assert cache.tree() == before


def test_on_a_full_disk_a_name_too_long_to_be_kept_is_finished_once_nobody_uses_it(filesystem):
    """Where it belongs is lost in the crash; that it is used is not."""
    cache = Cache(filesystem + b"/cache")
    name = "x" * 255
    cache.put(f"{name}/f", 300_000)
    fd = os.open(cache.path(f"{name}/f"), os.O_PATH)
    with cache.trash() as trash:
        for place in trash.places:
            place.refused = 28  # as if there were no room for it
        [piece] = [Piece(os.open(cache.root, os.O_RDONLY), name.encode(), name.encode())]
        trash.put_away(piece, b"1", 0)
        os.close(piece.home_fd)
    assert os.listdir(cache.root) == [b".cw-m1.0"]
    with process("fd = os.open(args[0], os.O_RDONLY)", os.readlink(f"/proc/self/fd/{fd}")):
        assert [(each.origin, each.fate) for each in cache.recover()] == [(None, Fate.IN_USE)]
    os.close(fd)
    assert [each.fate for each in cache.recover()] == [Fate.FINISHED]
    assert os.listdir(cache.root) == []


def filesystem_name(top):
    """The type that the mount table has for it."""
    with open("/proc/self/mounts", "rb") as mounts:
        return next(line.split()[2].decode() for line in mounts if line.split()[1] == top)


def test_on_a_full_disk_what_is_used_is_put_back(filesystem):
    cache = Cache(filesystem + b"/cache")
    cache.put("e/f", 300_000)
    fd = os.open(cache.path("e"), os.O_PATH)
    fill(filesystem)
    before = cache.tree()
    victim = cache.victim("e")
    held = []

    def act():
        held.append(process("os.chdir(args[0])", os.readlink(f"/proc/self/fd/{fd}")))
        held[0].__enter__()

    outcome = cache.evict(victim, at=at_step("moved", act))
    held[0].__exit__(None, None, None)
    os.close(fd)
    assert outcome.reason is KeepReason.IN_USE
    assert outcome.rolled_back
    assert cache.tree() == before


def test_a_rename_never_replaces(filesystem):
    for name in (b"/d", b"/full", b"/empty"):
        os.mkdir(filesystem + name)
    for name in (b"/f", b"/g", b"/full/x"):
        with open(filesystem + name, "wb") as file:
            file.write(name)
    os.symlink("nowhere", filesystem + b"/l")
    fd = os.open(filesystem, os.O_RDONLY)
    for rename in (rename_noreplace, rename_back, lambda *args: rename_plainly(*args, replace=False)):
        for old, new in ((b"f", b"g"), (b"l", b"g"), (b"d", b"full"), (b"d", b"g"), (b"f", b"full")):
            with pytest.raises(OSError, match=r"exists|not empty|Not a directory"):
                rename(old, fd, new, fd)
    for old in (b"f", b"l", b"d"):
        rename_to_unique(old, fd, b"new", fd)
        rename_plainly(b"new", fd, old, fd, replace=False)
    with open(filesystem + b"/f", "rb") as file:
        assert file.read() == b"/f"
    assert os.readlink(filesystem + b"/l") == b"nowhere"
    syncfs(fd)
    os.close(fd)
