"""Which directories changed, as inotify tells: all of them, or that it is not known."""

import os
import shutil
import subprocess
import time

import pytest

from cachewarden.watch import Watcher


class Location:
    """A watched tree. `take` waits until no more is reported."""

    def __init__(self, root):
        self.root, self.reported = os.fsencode(root), []
        self.watcher = Watcher(
            lambda _, path: self.reported.append(path), lambda: None, frozenset({b".trash"})
        )

    def take(self):
        count = -1
        while count != (count := len(self.reported)):
            time.sleep(0.2)
        fd = os.open(self.root, os.O_RDONLY)
        try:
            return self.watcher.take("k", fd)
        finally:
            os.close(fd)


@pytest.fixture
def location(tmp_path):
    (tmp_path / "root/a/deep").mkdir(parents=True)
    (tmp_path / "root/b").mkdir()
    (tmp_path / "outside/one/two").mkdir(parents=True)
    made = Location(tmp_path / "root")
    assert made.watcher.watch("k", made.root) == "inotify"
    assert made.take() is None
    yield made
    made.watcher.stop()


def write(path):
    with open(path, "wb") as file:
        file.write(b"x")


def test_nothing_changed_and_what_changed_is_told_once(location):
    assert location.take() == frozenset()
    write(location.root + b"/a/deep/f")
    write(location.root + b"/f")
    assert location.take() == {b"a/deep", b""}
    assert location.take() == frozenset()


def test_a_tree_that_comes_is_told_with_all_that_is_below_it(location, tmp_path):
    os.rename(tmp_path / "outside", location.root + b"/b/outside")
    assert location.take() == {b"b", b"b/outside", b"b/outside/one", b"b/outside/one/two"}
    os.makedirs(location.root + b"/new/er/est")
    write(location.root + b"/new/er/est/f")
    found = location.take()
    assert found >= {b"", b"new", b"new/er", b"new/er/est"}


def test_a_tree_that_goes_is_told_by_where_it_was(location, tmp_path):
    os.rename(location.root + b"/a", tmp_path / "gone")
    assert b"" in location.take()
    shutil.rmtree(location.root + b"/b")
    assert b"" in location.take()


def test_what_is_left_out_does_not_change(location):
    os.mkdir(location.root + b"/.trash")
    write(location.root + b"/.trash/f")
    assert location.take() == frozenset()


def test_an_answer_that_was_lost_brings_everything(location):
    location.watcher.lost("k")
    assert location.take() is None
    assert location.take() == frozenset()


def test_a_location_that_is_watched_in_part_may_have_changed_anywhere(location):
    here = os.open(location.root, os.O_RDONLY)
    for _ in range(300):  # deeper than is watched
        os.mkdir(b"d", dir_fd=here)
        below = os.open(b"d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        assert location.watcher.watch("k", location.root) == "partial"
        assert location.take() is None
        assert location.take() is None
    finally:
        subprocess.run(["rm", "-rf", os.path.join(location.root, b"d")], check=True)
    assert location.watcher.watch("k", location.root) == "inotify"
    assert location.take() is None
    assert location.take() == frozenset()


def test_more_directories_than_it_pays_to_tell_are_everything(location):
    for number in range(10_100):
        os.mkdir(location.root + b"/b/%d" % number)
    assert location.take() is None
    assert location.take() == frozenset()
