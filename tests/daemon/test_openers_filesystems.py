"""Opens are seen on each filesystem in the best form that it grants; a weaker one is named."""

import os
import subprocess
from contextlib import ExitStack, contextmanager

import pytest
from tests.daemon.opening import KEY, OPEN_AND_CLOSE, Program, Site, feeding, fill

from cachewarden.clock import SetClock, SystemClock
from cachewarden.inventory import Inventory
from cachewarden.openers import Form, OpenerFeed, Openers, Setting

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]

DISKS = ("ext4", "xfs", "btrfs")


def run(*command):
    subprocess.run([str(each) for each in command], check=True, capture_output=True)


@contextmanager
def mounted(point, *options):
    point.mkdir(exist_ok=True)
    run("mount", *options, point)
    try:
        yield point
    finally:
        run("umount", "-l", point)


@contextmanager
def disk(tmp_path, kind):
    """A filesystem of its own, in a file."""
    if kind == "tmpfs":
        with mounted(tmp_path / "disk", "-t", "tmpfs", "tmpfs") as point:
            yield point
        return
    image = tmp_path / "image"
    run("truncate", "-s", "400M", image)
    run(f"mkfs.{kind}", image)
    with mounted(tmp_path / "disk", "-o", "loop", image) as point:
        yield point


@pytest.mark.parametrize("kind", ["tmpfs", *DISKS])
def test_a_whole_filesystem_is_watched(tmp_path, kind):
    with disk(tmp_path, kind) as point:
        root = point / "cache"
        fill(root, "a/1.bin", "a/deep/2.bin", "b/1.bin", "single.bin")
        with feeding(root) as site:
            assert site.feed.form(KEY) is Form.FILESYSTEM
            with Program(OPEN_AND_CLOSE, root / "a/deep/2.bin", root / "single.bin") as reader:
                assert site.held() == {"a", "single.bin"}
                assert site.pids("a") == {reader.pid}
            assert site.held() == set()


def subvolume(tmp_path, point):
    run("btrfs", "subvolume", "create", point / "sub")
    return mounted(tmp_path / "sub", "-o", "loop,subvol=sub", tmp_path / "image")


def inode_again(place, inode):
    """A directory made in `place` that has this inode number; None where numbers do not come again."""
    for number in range(300):
        (place / f"d{number}").mkdir()
        if (place / f"d{number}").stat().st_ino == inode:
            return place / f"d{number}"
    return None


@pytest.mark.parametrize("kind", ["tmpfs", *DISKS])
def test_a_directory_that_gets_the_inode_number_of_a_gone_one_is_not_taken_for_it(tmp_path, kind):
    """A handle names the generation too, also while nobody has looked again."""
    with disk(tmp_path, kind) as point:
        top = point / "top" if kind == "ext4" else point  # it gives a free number to who is near
        root, outside = top / "cache", top / "outside"
        fill(root, *(f"e{number}/1.bin" for number in range(20)))  # XFS gives back what is empty as a whole
        fill(root, "a/1.bin", "b/1.bin", "flat.bin")
        outside.mkdir()
        inode = (root / "a").stat().st_ino
        with feeding(root) as site:
            run("rm", "-r", root / "a")
            os.sync()  # it frees inodes in the background
            again = inode_again(outside, inode)
            assert (again is None) == (kind in ("tmpfs", "btrfs"))  # these count on
            fill(again or outside, "1.bin")
            with Program(OPEN_AND_CLOSE, (again or outside) / "1.bin", root / "b/1.bin") as reader:
                assert site.pids("b") == {reader.pid}
                assert site.pids("a") == set()
                assert b"a" not in site.feed.recent(KEY)


def test_a_btrfs_subvolume_is_watched_by_way_of_the_top_where_that_is_mounted(tmp_path):
    with disk(tmp_path, "btrfs") as point, subvolume(tmp_path, point) as root:
        fill(root, "a/1.bin")
        with feeding(root) as site:
            assert site.feed.form(KEY) is Form.FILESYSTEM
            (root / "a/later").mkdir()
            with Program(OPEN_AND_CLOSE, root / "a/1.bin"):
                assert site.held() == {"a"}


def test_a_btrfs_subvolume_alone_is_watched_directory_by_directory(tmp_path):
    with disk(tmp_path, "btrfs") as point, subvolume(tmp_path, point) as root:
        run("umount", point)
        fill(root, "a/1.bin", "a/deep/2.bin", "single.bin")
        try:
            with feeding(root) as site:
                assert site.feed.form(KEY) is Form.DIRECTORIES
                with Program(OPEN_AND_CLOSE, root / "a/deep/2.bin") as reader:
                    assert site.pids("a") == {reader.pid}
                with Program(OPEN_AND_CLOSE, root / "single.bin"):
                    assert site.held() == {"single.bin"}
                fill(root, "b/new.bin")
                site.index()
                with Program(OPEN_AND_CLOSE, root / "b/new.bin"):
                    assert site.held() == {"b"}
        finally:
            run("mount", "-t", "tmpfs", "tmpfs", point)  # so that its end finds something to unmount


def test_two_btrfs_subvolumes_are_watched_at_once(tmp_path):
    with disk(tmp_path, "btrfs") as point:
        run("btrfs", "subvolume", "create", point / "other")
        options = ("-o", "loop,subvol=other", tmp_path / "image")
        with subvolume(tmp_path, point) as one, mounted(tmp_path / "other", *options) as other:
            run("umount", point)
            fill(one, "a/1.bin")
            fill(other, "a/1.bin")
            try:
                with feeding(one) as site:
                    second = Site(other, site.feed, "cache:/other")
                    assert second.index() is Form.DIRECTORIES
                    with Program(OPEN_AND_CLOSE, other / "a/1.bin"):
                        assert (site.held(), second.held()) == (set(), {"a"})
                    with Program(OPEN_AND_CLOSE, one / "a/1.bin"):
                        assert (site.held(), second.held()) == ({"a"}, set())
            finally:
                run("mount", "-t", "tmpfs", "tmpfs", point)  # so that its end finds something to unmount


@contextmanager
def overlay(tmp_path):
    with mounted(tmp_path / "layers", "-t", "tmpfs", "tmpfs") as layers:
        for name in ("lower", "upper", "work"):
            (layers / name).mkdir()
        fill(layers / "lower", "a/1.bin", "b/1.bin")
        options = f"lowerdir={layers}/lower,upperdir={layers}/upper,workdir={layers}/work"
        with mounted(tmp_path / "over", "-t", "overlay", "overlay", "-o", options) as over:
            yield layers / "lower", over


def test_an_open_through_an_overlay_is_seen_in_its_lower_layer(tmp_path):
    with overlay(tmp_path) as (lower, over), feeding(lower) as site:
        with Program(OPEN_AND_CLOSE, over / "a/1.bin"):
            assert site.held() == {"a"}
        assert site.held() == set()


def test_an_overlay_itself_is_watched_directory_by_directory(tmp_path):
    with overlay(tmp_path) as (_, over), feeding(over) as site:
        assert site.feed.form(KEY) is Form.DIRECTORIES
        with Program(OPEN_AND_CLOSE, over / "a/1.bin"):
            assert site.held() == {"a"}


def test_what_is_opened_once_a_service_was_asked_is_seen_where_directories_are_watched(tmp_path):
    """What it has told by then cannot have it, and a command would evict it."""
    with overlay(tmp_path) as (_, over), ExitStack() as begun:
        programs = []

        def ask():
            programs.append(begun.enter_context(Program(OPEN_AND_CLOSE, over / "b/1.bin")))

        feed = OpenerFeed(SystemClock(), setting=Setting(ask=ask))
        begun.callback(feed.stop)
        site = Site(over, feed)
        site.index()
        assert feed.form(KEY) is Form.DIRECTORIES
        assert site.pids("b") == {program.pid for program in programs}
        assert len(programs) == 1


def test_where_opens_cannot_be_seen_samples_are_taken_and_that_is_said(tmp_path):
    openers = Openers(SystemClock())
    with mounted(tmp_path / "gone", "-t", "tmpfs", "tmpfs") as point:
        fd = os.open(point, os.O_RDONLY)
    try:
        form = openers.index(KEY, fd, Inventory(0, 0, "plain"))  # of a mount that is in no table any more
    finally:
        os.close(fd)
        openers.stop()
    assert form is Form.SAMPLES
    assert openers.form(KEY) is Form.SAMPLES
    assert any("samples of /proc" in notice for notice in openers.take_notices())
    assert openers.take_notices() == []


def test_several_locations_share_a_filesystem_and_are_told_apart(tmp_path):
    fill(tmp_path / "one", "e/f")
    fill(tmp_path / "two", "e/f")
    with feeding(tmp_path / "one") as first:
        second = Site(tmp_path / "two", first.feed, "cache:/two")
        second.index()
        assert len(first.feed.descriptors()) == 2
        with Program(OPEN_AND_CLOSE, tmp_path / "two/e/f"):
            assert (first.held(), second.held()) == (set(), {"e"})
        first.feed.retain([first.key])
        assert first.feed.form("cache:/two") is Form.NONE
        assert first.feed.for_location("cache:/two").holds(b"e")  # unknown means in use


@pytest.mark.parametrize("kind", ["ext4", "btrfs"])
def test_a_filesystem_that_is_unmounted_and_comes_back_is_watched_again(tmp_path, kind):
    long_ago = SetClock(wall_ns=4_000_000_000 * 10**9)  # so that everything counts as unchanged
    with disk(tmp_path, kind) as point:
        fill(point / "cache", "a/1.bin", "single.bin")
        options = ["-o", "loop"]
        if kind == "btrfs":
            run("btrfs", "subvolume", "create", point / "sub")
            fill(point / "sub/cache", "a/1.bin", "single.bin")
            options = ["-o", "loop,subvol=sub"]
            run("umount", point)
            run("mount", *options, tmp_path / "image", point)
        with feeding(point / "cache", clock=long_ago) as site:
            site.index()
            run("umount", point)  # the feed does not keep it busy
            run("mount", *options, tmp_path / "image", point)
            site.index()
            with Program(OPEN_AND_CLOSE, point / "cache/a/1.bin", point / "cache/single.bin"):
                assert site.held() == {"a", "single.bin"}
