"""Eviction asks the feed: whoever opened something in a victim keeps it, before and during the steps."""

import os

import pytest
from tests.daemon.opening import OPEN_AND_CLOSE, Program, feeding, fill

from cachewarden.clock import SystemClock
from cachewarden.evict import Evictor, Trash, Victim
from cachewarden.holders import Machine
from cachewarden.report import Removed, Spared
from cachewarden.sums import Sums
from cachewarden_policies.reasons import KeepReason

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]


@pytest.fixture
def root(tmp_path):
    fill(tmp_path / "cache", "a/1.bin", "a/2.bin", "b/1.bin")
    return tmp_path / "cache"


def victim(root, name):
    sums = Sums()
    for path in (root / name, *(root / name).rglob("*")):
        sums.add(path.lstat())
    found = (root / name).lstat()
    raw = os.fsencode(name)
    return Victim(raw, (raw,), found.st_dev, found.st_ino, sums.bytes, sums.files, sums.newest_ns)


def nothing(_step):
    """At no step."""


def evict(site, *names, at=nothing, surroundings=None, room=8192):
    """Evict entries, asking the site's feed."""
    clock = SystemClock()
    fd = os.open(site.root, os.O_RDONLY)
    try:
        openers = site.feed.for_location(site.key)
        with (
            Trash(fd, os.fsencode(site.root)) as trash,
            Evictor(
                trash,
                surroundings or Machine(),
                now_ns=clock.wall_ns(),
                clock=clock,
                openers=openers,
                room=room,
                at=at,
            ) as evictor,
        ):
            return evictor.evict_all([victim(site.root, name) for name in names])
    finally:
        os.close(fd)


def test_a_living_opener_keeps_its_entry_and_no_other(root):
    with feeding(root) as site, Program(OPEN_AND_CLOSE, root / "a/1.bin") as reader:
        kept, gone = evict(site, "a", "b")
        assert isinstance(kept, Spared)
        assert kept.reason is KeepReason.LIVE_OPENER
        assert isinstance(gone, Removed)
        reader.end()
        (gone,) = evict(site, "a")
        assert isinstance(gone, Removed)
    assert os.listdir(root) == []


def test_who_opens_and_closes_while_eviction_is_under_way_keeps_the_entry(root):
    readers = []

    def at(step):
        if step == "opened":
            readers.append(Program(OPEN_AND_CLOSE, root / "a/1.bin").__enter__())

    with feeding(root) as site:
        try:
            (kept,) = evict(site, "a", at=at)
            assert isinstance(kept, Spared)
            assert kept.reason is KeepReason.LIVE_OPENER
            assert sorted(path.name for path in (root / "a").iterdir()) == ["1.bin", "2.bin"]
        finally:
            for reader in readers:
                reader.end()


class Watched(Machine):
    """A machine on which a program opens and closes a file while it is looked at for the first time."""

    def __init__(self, path):
        super().__init__()
        self.path, self.reader = path, None

    def look(self):
        if self.reader is None:
            self.reader = Program(OPEN_AND_CLOSE, self.path).__enter__()
        return super().look()


def test_who_comes_during_a_long_look_finds_an_entry_of_many_files_in_its_place(root):
    steps = []
    with feeding(root) as site:
        slow = Watched(root / "a/1.bin")
        try:
            (kept,) = evict(site, "a", surroundings=slow, room=2, at=steps.append)
        finally:
            slow.reader.end()
    assert kept.reason is KeepReason.LIVE_OPENER
    assert steps == ["opened"]


def test_our_own_steps_make_nobody_an_opener(root):
    with feeding(root) as site:
        evict(site, "a")
        site.feed.drain()
        assert site.feed.recent(site.key) == {}
        assert site.held() == set()
