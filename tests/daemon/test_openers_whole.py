"""What the service uses: one face over fanotify and samples, with everything that a restart needs."""

import os

import pytest
from tests.daemon.opening import KEY, OPEN_AND_CLOSE, Program, Site, fill

from cachewarden.clock import SystemClock
from cachewarden.openers import Form, Openers, Setting

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]


@pytest.fixture
def root(tmp_path):
    fill(tmp_path / "cache", "a/1.bin", "b/1.bin")
    return tmp_path / "cache"


def test_opens_are_seen_held_and_told(root):
    openers = Openers(SystemClock())
    openers.start()
    try:
        assert Site(root, openers).index() is Form.FILESYSTEM
        assert openers.form(KEY) is Form.FILESYSTEM
        with Program(OPEN_AND_CLOSE, root / "a/1.bin") as reader:
            asked = openers.for_location(KEY)
            asked.drain()
            assert (asked.holds(b"a"), asked.holds(b"b")) == (True, False)
            assert [holder.pid for holder in openers.openers(KEY, b"a")] == [reader.pid]
            assert openers.recent(KEY)[b"a"].pid == reader.pid
        assert openers.overflows == 0
        assert openers.take_notices() == []
    finally:
        openers.stop()


def test_a_location_that_was_never_indexed_is_held_whole():
    openers = Openers(SystemClock())
    try:
        assert openers.for_location(KEY).holds(b"a")
        assert openers.form(KEY) is Form.NONE
    finally:
        openers.stop()


def test_settling_forgets_other_locations_and_closes_what_nobody_took_over(root):
    left = os.open(os.devnull, os.O_RDONLY)
    openers = Openers(SystemClock(), setting=Setting(inherited={"fanotify-9.9-opens": left}))
    try:
        Site(root, openers).index()
        Site(root / "b", openers, "cache:/b").index()
        openers.settle([KEY])
        with pytest.raises(OSError, match="descriptor"):
            os.fstat(left)
        assert openers.for_location("cache:/b").holds(b"1.bin")
        assert not openers.for_location(KEY).holds(b"a")
        assert len(openers.descriptors()) == 2
    finally:
        openers.stop()
