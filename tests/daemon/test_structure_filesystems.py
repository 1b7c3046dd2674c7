"""Changes are seen with one mark where a filesystem grants it, and with inotify where it does not."""

import os
import subprocess
import sys

import pytest
from tests.daemon.opening import until
from tests.daemon.structuring import KEY, Site, by_others, fill, seeing
from tests.daemon.test_openers_filesystems import disk, mounted, overlay, run, subvolume

from cachewarden.kernel.fanotify import detect
from cachewarden.watch import Legacy, Told, Watching

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]


@pytest.mark.parametrize("kind", ["tmpfs", "ext4", "xfs", "btrfs"])
def test_a_whole_filesystem_is_seen_and_directories_keep_their_identity_through_moves(tmp_path, kind):
    with disk(tmp_path, kind) as point:
        fill(point, "cache/a/deep/f", "cache/b/f", "elsewhere/tree/f")
        with seeing(point / "cache", tmp_path / "state") as site:
            assert site.take() == set()
            fill(point, "cache/a/deep/g", "cache/new/er/f")
            assert until(lambda: site.asks)
            assert site.take() == {"", "new", "new/er", "a/deep"}
            by_others("os.rename(args[0] + '/elsewhere/tree', args[0] + '/cache/b/tree')", point)
            by_others("shutil.rmtree(args[0] + '/cache/a')", point)
            assert site.take() == {"", "b", "b/tree"}
            by_others("os.rename(args[0] + '/cache/b', args[0] + '/b'); shutil.rmtree(args[0] + '/b')", point)
            assert site.take() == {""}


def test_a_btrfs_subvolume_is_seen_by_way_of_the_top_where_that_is_mounted(tmp_path):
    with disk(tmp_path, "btrfs") as point, subvolume(tmp_path, point) as root:
        fill(root, "a/f")
        with seeing(root, tmp_path / "state") as site:
            fill(point, "other/f", "sub/a/by-the-top")
            assert site.take() == {"a"}
            fill(root, "a/g", "new/f")
            assert site.take() == {"", "a", "new"}


@pytest.mark.parametrize("kind", ["ext4", "btrfs"])
def test_a_filesystem_that_was_unmounted_may_have_changed_and_is_seen_again(tmp_path, kind):
    with disk(tmp_path, kind) as point:
        fill(point, "cache/a/f")
        with seeing(point / "cache", tmp_path / "state") as site:
            run("umount", point)  # nothing of ours keeps it busy
            run("mount", "-o", "loop", tmp_path / "image", point)
            fill(point, "cache/a/unseen")
            assert site.take() is None
            fill(point, "cache/a/seen")
            assert site.take() == {"a"}


class Watched(Site):
    """A location of a `Watching`: whatever source serves it."""

    def take(self):
        self.feed.watch(self.key, self.root)
        fd = os.open(self.root, os.O_RDONLY)
        try:
            found = self.feed.take(self.key, fd)
        finally:
            os.close(fd)
        return None if found is None else {os.fsdecode(path) for path in found}

    @property
    def mode(self):
        return self.feed.mode(self.key)


@pytest.fixture
def watching(tmp_path):
    """Makes locations, each watched and asked for once."""
    asked = []
    (tmp_path / "state").mkdir()
    legacy = Legacy(os.fsencode(tmp_path / "state"))
    made = Watching(Told(asked.append, lambda: None, lambda: None), frozenset({b"trash"}), legacy, detect())

    def of(root, key=KEY):
        site = Watched(root, made, asked, key)
        assert site.take() is None
        return site

    yield of
    made.stop(in_order=True)


def changes_are_told(site):
    root = os.fsdecode(site.root)
    assert site.take() == set()
    fill(root, "a/new")
    assert until(lambda: site.asks)
    assert site.take() == {"a"}
    fill(root, "fresh/deep/f")
    assert until(lambda: site.asks)
    told = set()
    assert until(lambda: told.update(site.take() or ()) or {"", "fresh", "fresh/deep"} <= told)


def test_an_overlay_is_watched_with_inotify_and_its_changes_are_told(tmp_path, watching):
    with overlay(tmp_path) as (_, over):
        site = watching(over)
        assert site.mode == "inotify"
        changes_are_told(site)


def test_a_btrfs_subvolume_alone_is_watched_with_inotify_and_its_changes_are_told(tmp_path, watching):
    with disk(tmp_path, "btrfs") as point, subvolume(tmp_path, point) as root:
        run("umount", point)
        try:
            fill(root, "a/f")
            site = watching(root)
            assert site.mode == "inotify"
            changes_are_told(site)
        finally:
            run("mount", "-t", "tmpfs", "tmpfs", point)  # so that its end finds something to unmount


RIGHTS = """
import os, sys
from cachewarden.kernel.fanotify import detect
from cachewarden.watch import Legacy, Told, Watching
root, state = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2])
made = Watching(Told(lambda key: None, lambda: None, lambda: None), frozenset(), Legacy(state), detect())
made.watch("k", root)
fd = os.open(root, os.O_RDONLY)
print(made.take("k", fd), made.mode("k"), made.take("k", fd), len(made.feed.take_notices()))
made.stop(in_order=True)
"""


@pytest.mark.parametrize(("right", "said"), [("sys_admin", 0), ("dac_read_search", 1)])
def test_without_a_right_that_it_takes_inotify_serves(tmp_path, right, said):
    fill(tmp_path, "cache/a/f")
    wrap = ["setpriv", f"--bounding-set=-{right}", f"--inh-caps=-{right}"]
    command = [*wrap, sys.executable, "-c", RIGHTS, str(tmp_path / "cache"), str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told == f"None inotify frozenset() {said}\n"


def test_whoever_grants_more_later_is_taken_at_its_word(tmp_path, watching):
    with disk(tmp_path, "btrfs") as point, subvolume(tmp_path, point) as root:
        run("umount", point)
        fill(root, "a/f")
        site = watching(root)
        assert site.mode == "inotify"
        run("mount", "-o", "loop", tmp_path / "image", point)
        assert site.take() is None
        assert site.mode == "fanotify"
        changes_are_told(site)


def test_a_filesystem_mounted_in_the_place_of_a_location_is_watched_in_its_stead(tmp_path, watching):
    fill(tmp_path / "cache", "a/f")
    site = watching(tmp_path / "cache")
    assert site.mode == "fanotify"
    with mounted(tmp_path / "cache", "-t", "tmpfs", "tmpfs"):
        fill(tmp_path / "cache", "a/f")
        assert site.take() is None
        changes_are_told(site)
    assert site.take() is None
    assert site.take() == set()


def test_a_location_that_is_not_there_is_in_no_mode_until_it_comes(tmp_path, watching):
    root = tmp_path / "late"
    asked = watching(tmp_path)  # so that something exists
    asked.feed.watch("cache:/late", os.fsencode(root))
    assert asked.feed.mode("cache:/late") == "none"
    fill(root, "a/f")
    assert watching(root, "cache:/late").mode == "fanotify"
