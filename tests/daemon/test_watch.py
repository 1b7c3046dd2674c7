"""Real inotify, on real trees; its limits in user namespaces of their own."""

import json
import os
import shutil
import subprocess
import sys
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
    seen.watcher.watch_roots([os.fsencode(tmp_path)])
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
    seen.changes.clear()
    write(root + b".old/f")
    assert seen.settle() == []


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
    seen.watcher.watch_roots([home, home + b"/missing"])
    os.mkdir(home + b"/bob")
    os.symlink(b"bob", home + b"/link")
    seen.wait((None, home + b"/bob"), (None, home + b"/link"))
    os.mkdir(home + b"/alice/.accelerate")
    os.rmdir(home + b"/bob")
    seen.settle()
    assert (None, home + b"/alice/.accelerate") not in seen.changes
    seen.watcher.watch_roots([home + b"/alice"])
    seen.changes.clear()
    os.mkdir(home + b"/carol")
    os.rmdir(home + b"/alice/.accelerate")
    seen.wait((None, home + b"/alice/.accelerate"))
    assert (None, home + b"/carol") not in seen.settle()


def test_a_directory_may_be_a_root_and_part_of_a_location(seen, root):
    seen.watcher.watch("k", root)
    seen.watcher.watch_roots([root + b"/a"])
    os.mkdir(root + b"/a/n")
    seen.wait(("k", root + b"/a/n"), (None, root + b"/a/n"))
    seen.watcher.watch_roots([])
    seen.changes.clear()
    write(root + b"/a/f")
    seen.wait(("k", root + b"/a/f"))
    assert {key for key, _ in seen.settle()} == {"k"}


def test_a_chain_deeper_than_descriptors_or_recursion_go_is_watched_in_part(seen, root):
    here = os.open(root, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir(b"d", dir_fd=here)
        below = os.open(b"d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert seen.watcher.watch("k", root) == "partial"
    write(root + b"/d/d/f")
    seen.wait(("k", root + b"/d/d/f"))


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


# In a user namespace of its own, where the limits can be set without touching the machine's.
LIMITED = """
import json, os, sys, time
from cachewarden.watch import Watcher
setting, value, root = sys.argv[1], sys.argv[2], os.fsencode(sys.argv[3])
def limit(value):
    with open("/proc/sys/user/max_inotify_" + setting, "w") as f: f.write(value)
limit(value)
changes = []
watcher = Watcher(lambda key, path: changes.append(os.fsdecode(path)), lambda: None)
first, warning = watcher.watch("k", root), watcher.warning
watcher.watch_roots([os.path.dirname(root)])
os.mkdir(root + b"/d1/new") if setting == "watches" else None
time.sleep(0.5)
second = watcher.mode("k")
limit("1000")
third, later = watcher.watch("k", root), watcher.warning
open(root + b"/d20/f", "w").close()
end = time.monotonic() + 5
while time.monotonic() < end and not any("d20/f" in c for c in changes): time.sleep(0.05)
print(json.dumps([first, warning, second, third, later, any("d20/f" in c for c in changes)]))
watcher.stop()
"""


@pytest.mark.parametrize(
    ("setting", "value", "mode"),
    [("watches", "5", "partial"), ("watches", "0", "polling"), ("instances", "0", "polling")],
)
def test_limits_that_are_reached_are_told_with_their_sysctl_and_healed_when_raised(
    tmp_path, setting, value, mode
):
    for number in range(1, 21):
        (tmp_path / "root" / f"d{number}").mkdir(parents=True)
    done = subprocess.run(
        ["unshare", "-Ur", sys.executable, "-c", LIMITED, setting, value, str(tmp_path / "root")],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare failed" in done.stderr:
        pytest.skip(f"user namespaces are not allowed here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    first, warning, second, third, later, noticed = json.loads(done.stdout)
    assert (first, second) == (mode, mode)
    assert f"fs.inotify.max_user_{setting}" in warning
    assert (third, later, noticed) == ("inotify", None, True)


# Another user, because root reads everything.
UNREADABLE = """
import json, os, sys
from cachewarden.watch import Watcher
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
watcher = Watcher(lambda key, path: None, lambda: None)
print(json.dumps([watcher.watch("k", os.fsencode(sys.argv[1])), watcher.warning]))
watcher.stop()
"""


def test_a_directory_that_cannot_be_read_makes_the_watch_partial_without_blaming_a_limit(tmp_path):
    locked = tmp_path / "root" / "locked"
    locked.mkdir(parents=True)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o011)
    (tmp_path / "root").chmod(0o755)
    locked.chmod(0)
    done = subprocess.run(
        [sys.executable, "-c", UNREADABLE, str(tmp_path / "root")],
        capture_output=True,
        text=True,
        check=False,
    )
    locked.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["partial", None]


# A process of its own, because it is stopped while its queue overflows.
BURST = """
import os, sys
from cachewarden.watch import Watcher
root, overflows, changes = os.fsencode(sys.argv[1]), [], [0]
def changed(key, path): changes[0] += 1
watcher = Watcher(changed, lambda: overflows.append(1))
print(watcher.watch("k", root), flush=True)
sys.stdin.readline()
print(len(overflows), watcher.mode("k"), watcher.watch("k", root), flush=True)
seen = []
watcher2_before = changes[0]
sys.stdin.readline()
import time
time.sleep(0.5)
print(changes[0] > watcher2_before, flush=True)
watcher.stop()
"""


def test_an_overflow_is_told_once_and_heals_with_the_next_look(tmp_path):
    root = os.fsencode(tmp_path)
    with open("/proc/sys/fs/inotify/max_queued_events") as setting:
        length = int(setting.read())
    if length > 100_000:
        pytest.skip(f"fs.inotify.max_queued_events is {length}: too many files to make")
    child = subprocess.Popen(
        [sys.executable, "-c", BURST, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "inotify\n"
        os.kill(child.pid, 19)
        os.mkdir(root + b"/b")
        for number in range(length // 2 + 2000):
            os.close(os.open(root + b"/%d" % number, os.O_CREAT | os.O_WRONLY))
        os.makedirs(root + b"/x/1/2/3")
        os.kill(child.pid, 18)
        time.sleep(3)
        print(file=child.stdin, flush=True)
        assert child.stdout.readline() == "1 partial inotify\n"
        write(root + b"/x/1/2/3/f")
        print(file=child.stdin, flush=True)
        assert child.stdout.readline() == "True\n"
    finally:
        child.kill()
        child.communicate()
