"""A restart of the service misses no change, or knows that it may have."""

import contextlib
import os
import subprocess

import pytest
from tests.daemon.opening import until
from tests.daemon.structuring import KEY, Site, by_others, fill, seeing

from cachewarden.watch.structure import StructureFeed

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]

NAME = "structure.json"


@pytest.fixture
def disk(tmp_path):
    """A filesystem on which nobody else is at work."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", tmp_path], check=True)
    fill(tmp_path, "cache/a/f", "cache/b/f", "other/a/f")
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


@contextlib.contextmanager
def first(disk):
    """The process before; what it leaves behind is in `kept` afterwards."""
    with seeing(disk / "cache", disk / "state") as site:
        site.kept = {}
        yield site
        site.kept |= {label: os.dup(fd) for label, fd in site.feed.descriptors().items()}


def test_what_changes_while_nobody_reads_is_told_by_the_next_process(disk):
    with first(disk) as before:
        pass
    fill(disk, "cache/a/meanwhile")
    with seeing(disk / "cache", disk / "state", inherited=before.kept) as site:
        assert site.first == {"a"}
        fill(disk, "cache/b/later")
        assert site.take() == {"b"}


def test_nothing_changed_is_told_as_well(disk):
    with first(disk) as before:
        pass
    with seeing(disk / "cache", disk / "state", inherited=before.kept) as site:
        assert site.first == set()


def test_what_was_read_and_not_asked_for_yet_is_told_by_the_next_process(disk):
    with first(disk) as before:
        fill(disk, "cache/a/new")
        by_others("os.rename(args[0], args[1])", disk / "cache/b", disk / "cache/a/moved")
        assert until(lambda: before.asks)
    fill(disk, "cache/a/moved/more")
    with seeing(disk / "cache", disk / "state", inherited=before.kept) as site:
        assert site.first == {"", "a", "a/moved"}


def test_what_waited_in_the_queue_when_the_process_left_is_told_by_the_next_one(disk):
    with first(disk) as before:
        fill(disk, "cache/a/new")
    with seeing(disk / "cache", disk / "state", inherited=before.kept) as site:
        assert site.first == {"a"}


def test_what_was_lost_before_is_not_known_after(disk):
    with first(disk) as before:
        before.feed.lost(KEY)
    with seeing(disk / "cache", disk / "state", inherited=before.kept) as site:
        assert site.first is None


def test_a_location_that_asks_later_has_missed_nothing_that_was_read_for_another(disk):
    with first(disk) as before:
        other = Site(disk / "other", before.feed, before.asked, "cache:/other")
        other.take()
    fill(disk, "cache/a/new", "other/a/new")
    with seeing(disk / "cache", disk / "state", inherited=before.kept) as site:
        assert site.first == {"a"}  # this read what waited for both
        again = Site(disk / "other", site.feed, site.asked, "cache:/other")
        assert again.take() == {"a"}


def test_a_process_that_was_killed_leaves_nothing_to_rely_on(disk):
    with first(disk) as before:
        pass
    with seeing(disk / "cache", disk / "state", inherited={k: os.dup(fd) for k, fd in before.kept.items()}):
        # What this one reads it takes with it, and it took what had been kept as well.
        assert not (disk / "state" / NAME).exists()
        with seeing(disk / "cache", disk / "state", inherited=before.kept) as site:
            assert site.first is None


def test_a_stop_with_a_pass_left_behind_keeps_nothing(disk):
    with seeing(disk / "cache", disk / "state") as before:
        kept = {label: os.dup(fd) for label, fd in before.feed.descriptors().items()}
        before.feed.stop(in_order=False)
    with seeing(disk / "cache", disk / "state", inherited=kept) as site:
        assert site.first is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 1}', b'{"version": 9, "channels": {}}'])
def test_a_file_that_cannot_be_read_is_worth_nothing_and_is_gone_afterwards(disk, content):
    with first(disk) as before:
        pass
    (disk / "state" / NAME).write_bytes(content)
    with seeing(disk / "cache", disk / "state", inherited=before.kept) as site:
        assert site.first is None
        assert not (disk / "state" / NAME).exists()


def test_without_the_groups_what_was_kept_is_worth_nothing(disk):
    with first(disk):
        pass
    with seeing(disk / "cache", disk / "state") as site:
        assert site.first is None


def test_another_root_in_the_same_place_is_not_known(disk):
    with first(disk) as before:
        pass
    by_others("os.rename(args[0], args[0] + '-away'); os.mkdir(args[0])", disk / "cache")
    with seeing(disk / "cache", disk / "state", inherited=before.kept) as site:
        assert site.first is None


def test_a_filesystem_that_was_away_meanwhile_is_not_known(tmp_path):
    point = tmp_path / "disk"
    point.mkdir()
    subprocess.run(["truncate", "-s", "100M", tmp_path / "image"], check=True)
    subprocess.run(["mkfs.ext4", "-q", tmp_path / "image"], check=True)
    mount = ["mount", "-o", "loop", tmp_path / "image", point]
    subprocess.run(mount, check=True)
    try:
        fill(point, "cache/a/f")
        with seeing(point / "cache", tmp_path / "state") as before:
            kept = {label: os.dup(fd) for label, fd in before.feed.descriptors().items()}
        subprocess.run(["umount", point], check=True)
        subprocess.run(mount, check=True)
        with seeing(point / "cache", tmp_path / "state", inherited=kept) as site:
            assert site.first is None
            fill(point, "cache/a/new")
            assert site.take() == {"a"}
    finally:
        subprocess.run(["umount", "-l", point], check=True)


def test_what_is_handed_down_and_is_no_such_group_is_closed(disk):
    with first(disk) as before:
        labels = list(before.feed.descriptors())
    strange = {label: os.open(os.devnull, os.O_RDONLY) for label in [*labels, "structure-9.9"]}
    with seeing(disk / "cache", disk / "state", inherited=strange) as site:
        assert site.first is None
        site.feed.settle([KEY])
        open_now = {
            os.readlink(f"/proc/self/fd/{fd}")
            for fd in strange.values()
            if os.path.lexists(f"/proc/self/fd/{fd}")
        }
        assert os.devnull not in open_now


def test_locations_that_are_no_more_are_forgotten_when_all_have_asked(disk):
    with first(disk) as before:
        Site(disk / "other", before.feed, before.asked, "cache:/other").take()
    with seeing(disk / "cache", disk / "state", inherited=before.kept) as site:
        (channel,) = {each for each, _ in site.feed._all()}
        assert set(channel.places) == {KEY, "cache:/other"}
        site.feed.settle([KEY])
        assert set(channel.places) == {KEY}


def test_a_full_state_directory_is_said_and_stops_nothing(disk):
    feed = StructureFeed([].append, os.fsencode(disk / "missing"))
    site = Site(disk / "cache", feed, [])
    assert site.take() is None
    feed.stop()
    assert any("not known at the next start" in notice for notice in feed.take_notices())
