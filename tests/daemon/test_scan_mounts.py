"""Other mounts inside a location are neither counted nor entered, and looking leaves no access time."""

import os
import subprocess
import time
from contextlib import contextmanager

import pytest

from cachewarden.inventory import Claim, Split
from cachewarden.kernel import openat2
from cachewarden.kernel.statfs import usage
from cachewarden.scan import scan
from cachewarden_policies.reasons import KeepReason

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]

MIB = 1 << 20


@contextmanager
def mounted(point, *options):
    """Mount with these arguments of mount(8), and take it off again whatever happens."""
    subprocess.run(["mount", *options, point], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=True)


def put(path, size=MIB):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size))


def measure(root):
    claims = tuple(Claim(os.fsencode(name), (os.fsencode(name),)) for name in sorted(os.listdir(root)))
    fd = os.open(root, os.O_RDONLY)
    try:
        return scan(fd, Split("plain", claims))
    finally:
        os.close(fd)


@pytest.fixture
def root(tmp_path):
    for path in ("root/e/f", "root/k/f", "root/e/n/hidden", "root/s/config", "victim/v"):
        put(tmp_path / path)
    (tmp_path / "root/e/m").mkdir()
    (tmp_path / "root/p").mkdir()
    return tmp_path / "root"


def test_bind_mounts_of_the_same_filesystem_are_not_entered(root):
    with (
        mounted(root / "e/m", "--bind", root.parent / "victim"),
        mounted(root / "e/n", "-t", "tmpfs", "-o", "size=4M", "tmpfs"),
        mounted(root / "p", "--bind", root.parent / "victim"),
        mounted(root / "s/config", "--bind", root.parent / "victim/v"),
    ):
        assert (root / "e/m").stat().st_dev == root.stat().st_dev  # the device number tells nothing
        put(root / "e/n/t")
        inventory = measure(root)
    assert inventory.bytes == 2 * MIB
    assert inventory.mounts == (b"e/m", b"e/n", b"p", b"s/config")
    assert {entry.name: entry.measure.obstacle for entry in inventory.entries} == {
        b"e": KeepReason.MOUNTPOINT,
        b"k": None,
        b"p": KeepReason.MOUNTPOINT,
        b"s": KeepReason.MOUNTPOINT,
    }
    assert inventory.complete


def test_a_location_that_is_a_mount_point_itself_is_measured(root, tmp_path):
    (tmp_path / "point").mkdir()
    with mounted(tmp_path / "point", "--bind", root) as point, mounted(point / "e/m", "--bind", tmp_path):
        inventory = measure(point)
    assert (inventory.bytes, inventory.mounts) == (4 * MIB, (b"e/m",))


@pytest.mark.parametrize("call", [openat2.open_on_mount, openat2.open_and_compare])
def test_a_directory_on_another_mount_cannot_be_opened_by_accident(root, call):
    fd = os.open(root / "e", os.O_RDONLY)
    try:
        with (
            mounted(root / "e/m", "--bind", root.parent / "victim"),
            pytest.raises(OSError, match="cross-device"),
        ):
            call(b"m", fd)
        os.close(call(b"m", fd))
        os.symlink("m", root / "e/link")
        with pytest.raises(OSError, match=r"Not a directory|symbolic"):
            call(b"link", fd)
    finally:
        os.close(fd)


@pytest.fixture
def strict(tmp_path):
    """A small ext4 that notes every access."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(32 * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    (tmp_path / "point").mkdir()
    with mounted(tmp_path / "point", "-o", "loop,strictatime", image) as point:
        yield point


def test_measuring_leaves_every_access_time_alone(strict):
    put(strict / "e/sub/f", 4096)
    (strict / "e/link").symlink_to("sub")

    def access_times():
        return {
            os.path.join(at, name): os.lstat(os.path.join(at, name)).st_atime_ns
            for at in (strict, strict / "e", strict / "e/sub")
            for name in (".", "f", "link")
            if os.path.lexists(os.path.join(at, name))
        }

    time.sleep(0.02)
    names = tuple(Claim(name, (name,)) for name in (b"e", b"lost+found"))
    before = access_times()
    fd = os.open(strict, os.O_RDONLY)
    assert scan(fd, Split("plain", names)).files == 1
    os.close(fd)
    # The root's descriptor is the caller's, opened with or without O_NOATIME.
    after = access_times() | {os.path.join(strict, "."): before[os.path.join(strict, ".")]}
    assert after == before


def test_a_deleted_file_that_is_open_is_no_usage_and_free_space_is_what_users_may_take(strict):
    for number in range(3):
        put(strict / f"e{number}/f", 2 * MIB)
    ghost = (strict / "ghost").open("wb")
    ghost.write(bytes(8 * MIB))
    ghost.flush()
    (strict / "ghost").unlink()
    os.sync()
    assert measure(strict).bytes == 6 * MIB
    space, found = usage(os.fsencode(strict)), os.statvfs(strict)
    assert space.avail_bytes == found.f_bavail * found.f_frsize
    assert space.avail_bytes < found.f_bfree * found.f_frsize  # ext4 keeps 5 % for root
    assert 0 < space.avail_inodes < space.size_inodes
    assert space.counts_inodes
    ghost.close()
    os.sync()
    assert usage(os.fsencode(strict)).avail_bytes >= space.avail_bytes + 8 * MIB
