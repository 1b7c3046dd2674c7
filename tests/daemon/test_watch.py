"""Real inotify, on real trees."""

import os
import shutil
import threading
import time

import pytest

from cachewarden.watch import Watcher


class Seen:
    """What a watcher reported."""

    def __init__(self) -> None:
        self.changes: list[tuple[str | None, bytes]] = []
        self.overflows = 0
        self.watcher = Watcher(
            lambda key, path: self.changes.append((key, path)), self.overflow, frozenset({b".trash"})
        )

    def overflow(self) -> None:
        self.overflows += 1

    def wait(self, *expected: tuple[str | None, bytes]) -> None:
        end = time.monotonic() + 10
        while not set(expected) <= set(self.changes):
            assert time.monotonic() < end, f"{expected} not in {self.changes[-20:]}"
            time.sleep(0.01)

    def settle(self) -> list[tuple[str | None, bytes]]:
        """All changes so far, when no more come."""
        count = -1
        while count != len(self.changes):
            count = len(self.changes)
            time.sleep(0.2)
        return self.changes


@pytest.fixture
def seen():
    seen = Seen()
    yield seen
    seen.watcher.stop()


@pytest.fixture
def root(tmp_path) -> bytes:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    return os.fsencode(tmp_path / "root")


def write(path: bytes, data: bytes = b"x") -> None:
    with open(path, "wb") as file:
        file.write(data)


def watches() -> int:
    """How many inotify watches this process has, from the kernel's own books."""
    count = 0
    for fd in os.listdir("/proc/self/fdinfo"):
        try:
            with open(f"/proc/self/fdinfo/{fd}") as info:
                count += sum(line.startswith("inotify wd:") for line in info)
        except FileNotFoundError:
            pass
    return count


def test_what_is_written_created_moved_and_deleted_is_reported(seen, root):
    assert seen.watcher.watch("k", root) == "inotify"
    write(root + b"/a/f")
    seen.wait(("k", root + b"/a/f"))
    os.rename(root + b"/a/f", root + b"/a/b/g")
    seen.wait(("k", root + b"/a/b/g"))
    seen.changes.clear()
    os.unlink(root + b"/a/b/g")
    seen.wait(("k", root + b"/a/b/g"))
    os.rmdir(root + b"/a/b")
    seen.wait(("k", root + b"/a/b"))


def test_reading_is_no_change(seen, root):
    write(root + b"/f")
    seen.watcher.watch("k", root)
    for _ in range(3):
        with open(root + b"/f", "rb") as file:
            file.read()
        os.listdir(root)
        os.stat(root + b"/f")
    assert seen.settle() == []


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\nb", b'q"\\', b" lead", b"-rf", b"x" * 255, "é".encode()])
def test_names_are_bytes_from_the_kernel_to_the_caller(seen, root, name):
    assert seen.watcher.watch("k", root) == "inotify"
    os.mkdir(root + b"/" + name)
    seen.wait(("k", root + b"/" + name))
    write(root + b"/" + name + b"/f")
    seen.wait(("k", root + b"/" + name + b"/f"))


def test_a_folder_filled_before_it_could_be_watched_is_reported_and_watched(seen, root):
    seen.watcher.watch("k", root)
    for round_ in range(20):
        deep = root + b"/x%d/1/2/3/4/5" % round_
        os.makedirs(deep)
        write(deep + b"/f")
        # Measuring the new folder after its report finds what its own watches came too late for.
        seen.wait(("k", root + b"/x%d" % round_))
    seen.settle()
    for round_ in range(20):
        late = root + b"/x%d/1/2/3/4/5/late" % round_
        write(late)
        seen.wait(("k", late))
    assert seen.watcher.mode("k") == "inotify"


def test_a_folder_that_is_moved_in_is_watched_and_one_moved_out_is_not(seen, root, tmp_path):
    outside = os.fsencode(tmp_path / "outside")
    os.makedirs(outside + b"/deep/er")
    seen.watcher.watch("k", root)
    before = watches()
    os.rename(outside, root + b"/in")
    seen.wait(("k", root + b"/in"))
    seen.settle()
    assert watches() == before + 3
    write(root + b"/in/deep/er/f")
    seen.wait(("k", root + b"/in/deep/er/f"))
    os.rename(root + b"/in", outside)
    seen.settle()
    assert watches() == before
    seen.changes.clear()
    write(outside + b"/deep/er/g")
    assert seen.settle() == []


def test_a_folder_that_is_renamed_is_reported_by_its_new_name(seen, root):
    seen.watcher.watch("k", root)
    os.rename(root + b"/a", root + b"/c")
    seen.wait(("k", root + b"/a"), ("k", root + b"/c"))
    seen.settle()
    write(root + b"/c/b/f")
    seen.wait(("k", root + b"/c/b/f"))


def test_ignored_names_are_neither_watched_nor_reported(seen, root):
    os.makedirs(root + b"/.trash/deep")
    seen.watcher.watch("k", root)
    before = watches()
    os.rename(root + b"/a/b", root + b"/.trash/p-1")
    seen.wait(("k", root + b"/a/b"))
    write(root + b"/.trash/p-1/f")
    shutil.rmtree(root + b"/.trash")
    assert not [path for _, path in seen.settle() if b".trash" in path]
    assert watches() == before - 1


def test_links_are_not_followed(seen, root, tmp_path):
    os.mkdir(tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", root + b"/link")
    seen.watcher.watch("k", root)
    write(os.fsencode(tmp_path / "elsewhere") + b"/f")
    assert seen.settle() == []


def test_changes_carry_the_key_of_their_location_and_end_with_it(seen, root, tmp_path):
    second = os.fsencode(tmp_path / "second")
    os.mkdir(second)
    seen.watcher.watch("one", root)
    seen.watcher.watch("two", second)
    write(second + b"/f")
    seen.wait(("two", second + b"/f"))
    seen.watcher.unwatch("two")
    seen.watcher.unwatch("never heard of")
    assert seen.watcher.mode("two") == "none"
    seen.changes.clear()
    write(second + b"/g")
    write(root + b"/g")
    seen.wait(("one", root + b"/g"))
    assert {key for key, _ in seen.settle()} == {"one"}


def test_many_locations_cost_one_thread(seen, tmp_path):
    seen.watcher.watch("first", os.fsencode(tmp_path))
    threads = threading.active_count()
    for number in range(50):
        (tmp_path / f"l{number}").mkdir()
        assert seen.watcher.watch(f"k{number}", os.fsencode(tmp_path / f"l{number}")) == "inotify"
    assert threading.active_count() == threads


def test_a_missing_location_is_none_and_is_taken_up_when_it_appears(seen, tmp_path):
    path = os.fsencode(tmp_path / "later")
    assert seen.watcher.watch("k", path) == "none"
    seen.watcher.watch_roots("me", [os.fsencode(tmp_path)])
    os.mkdir(path)
    seen.wait((None, path))
    assert seen.watcher.watch("k", path) == "inotify"
    write(path + b"/f")
    seen.wait(("k", path + b"/f"))


@pytest.mark.parametrize("leave", ["delete", "move"])
def test_a_location_that_goes_is_reported_and_taken_up_again(seen, root, leave):
    seen.watcher.watch("k", root)
    before = watches()
    if leave == "delete":
        shutil.rmtree(root)
    else:
        os.rename(root, root + b".old")
    seen.wait(("k", root))
    seen.settle()
    assert seen.watcher.mode("k") == "none"
    assert watches() == before - 3
    os.mkdir(root)
    assert seen.watcher.watch("k", root) == "inotify"
    write(root + b"/f")
    seen.wait(("k", root + b"/f"))


def test_a_location_replaced_by_another_directory_is_followed_by_the_next_look(seen, root):
    seen.watcher.watch("k", root)
    os.rename(root, root + b".old")
    os.mkdir(root)
    assert seen.watcher.watch("k", root) == "inotify"
    seen.settle()
    assert seen.watcher.watch("k", root) == "inotify"
    write(root + b"/f")
    seen.wait(("k", root + b"/f"))
    write(root + b".old/other")
    assert not [path for _, path in seen.settle() if path.endswith(b"/other")]


def test_looking_again_adds_nothing_twice_and_loses_nothing(seen, root):
    seen.watcher.watch("k", root)
    before = watches()
    for _ in range(3):
        assert seen.watcher.watch("k", root) == "inotify"
    assert watches() == before
    write(root + b"/a/b/f")
    seen.wait(("k", root + b"/a/b/f"))
    assert seen.settle().count(("k", root + b"/a/b/f")) == 2  # created, and closed after writing


def test_roots_report_names_that_come_and_go_but_not_what_is_below(seen, tmp_path):
    home = os.fsencode(tmp_path)
    os.mkdir(home + b"/alice")
    seen.watcher.watch_roots("me", [home, home + b"/missing"])
    os.mkdir(home + b"/bob")
    os.symlink(b"bob", home + b"/link")
    seen.wait((None, home + b"/bob"), (None, home + b"/link"))
    os.mkdir(home + b"/alice/.accelerate")
    os.rmdir(home + b"/bob")
    seen.settle()
    assert (None, home + b"/alice/.accelerate") not in seen.changes
    seen.watcher.watch_roots("me", [home + b"/alice"])
    seen.changes.clear()
    os.mkdir(home + b"/carol")
    os.rmdir(home + b"/alice/.accelerate")
    seen.wait((None, home + b"/alice/.accelerate"))
    assert (None, home + b"/carol") not in seen.settle()


def test_a_directory_may_be_a_root_and_part_of_a_location(seen, root):
    seen.watcher.watch("k", root)
    seen.watcher.watch_roots("me", [root + b"/a"])
    os.mkdir(root + b"/a/n")
    seen.wait(("k", root + b"/a/n"), (None, root + b"/a/n"))
    seen.watcher.watch_roots("me", [])
    seen.changes.clear()
    write(root + b"/a/f")
    seen.wait(("k", root + b"/a/f"))
    assert {key for key, _ in seen.settle()} == {"k"}


def test_many_files_are_watched_for_little_and_given_back_at_the_end(tmp_path):
    for number in range(2000):
        (tmp_path / f"d{number % 20}" / f"e{number}").mkdir(parents=True)
    seen = Seen()
    before, descriptors = watches(), len(os.listdir("/proc/self/fd"))
    start = time.thread_time()
    assert seen.watcher.watch("k", os.fsencode(tmp_path)) == "inotify"
    assert time.thread_time() - start < 1
    assert watches() == before + 2021
    shutil.rmtree(tmp_path / "d0")
    seen.settle()
    assert watches() == before + 2021 - 101
    seen.watcher.unwatch("k")
    seen.settle()
    assert watches() == before
    seen.watcher.stop()
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert seen.watcher.watch("k", os.fsencode(tmp_path)) == "polling", "stopped for good"
