"""On a machine where one look takes long: no lease is held meanwhile, and nothing else is weaker for it."""

import os
import time

import pytest
from tests.daemon.evicting import Cache

from cachewarden.holders import Machine
from cachewarden.report import Removed, Spared
from cachewarden_policies.reasons import KeepReason

STEPS = ["opened", "looked", "leased", "moved", "resting", "leased", "verified", "committed", "released"]


class Busy(Machine):
    """The machine, which is busy at the first look; at the second one something happens."""

    def __init__(self, action=lambda: None):
        super().__init__()
        self.looks, self.action = 0, action

    def look(self):
        self.looks += 1
        if self.looks == 1:
            time.sleep(0.5)
        if self.looks == 2:
            self.action()
        return super().look()


@pytest.fixture
def cache(tmp_path):
    cache = Cache(tmp_path / "cache")
    cache.put("e/f")
    cache.put("e/sub/g")
    yield cache
    cache.sweep()


def test_an_entry_goes_by_the_same_steps(cache):
    steps = []
    assert isinstance(cache.evict(cache.victim("e"), surroundings=Busy(), at=steps.append), Removed)
    assert steps == STEPS
    assert not cache.has("e")


def test_who_opens_a_file_during_the_second_look_does_not_wait_and_keeps_the_entry(cache):
    before = cache.tree()
    inside = os.open(cache.path("e"), os.O_RDONLY | os.O_DIRECTORY)  # ours: no look finds us
    opened = []

    def come():
        begun = time.monotonic()
        opened.append(os.open("f", os.O_RDONLY, dir_fd=inside))
        opened.append(time.monotonic() - begun)

    try:
        outcome = cache.evict(cache.victim("e"), surroundings=Busy(come))
        assert isinstance(outcome, Spared)
        assert (outcome.reason, outcome.rolled_back) == (KeepReason.IN_USE, True)
        assert opened[1] < 0.4
        assert cache.tree() == before
    finally:
        os.close(opened[0])
        os.close(inside)


def test_what_is_written_during_the_second_look_brings_the_entry_back(cache):
    inside = os.open(cache.path("e"), os.O_RDONLY | os.O_DIRECTORY)

    def come():
        os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=inside))

    try:
        assert cache.evict(cache.victim("e"), surroundings=Busy(come)).reason is KeepReason.CHANGED
        assert cache.has("e/new")
    finally:
        os.close(inside)
