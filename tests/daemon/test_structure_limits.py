"""Where the feed meets a limit it says so and all is looked at again; the busy elsewhere cost nothing."""

import os
import signal
import subprocess
import sys

import pytest
from tests.daemon.opening import until
from tests.daemon.structuring import KEY, Site, by_others, fill, seeing

from cachewarden.openers.silence import root_above
from cachewarden.watch.structure.books import Known, Place
from cachewarden.watch.structure.places import MANY

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]


@pytest.fixture
def disk(tmp_path):
    """A filesystem on which nobody else is at work."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", tmp_path], check=True)
    fill(tmp_path, "cache/a/f", "cache/b/f", "elsewhere/f")
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


# A process of its own, because it is stopped while its queue fills.
STOPPED = """
import os, sys, time
from cachewarden.watch.structure import StructureFeed
root, state, unlimited = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2]), sys.argv[3] == "unlimited"
feed = StructureFeed([].append, state, unlimited=unlimited)
fd = os.open(root, os.O_RDONLY)
def take():
    feed.watch("k", root)
    found = feed.take("k", fd)
    return "everything" if found is None else len(found)
take()
print("ready", flush=True)
sys.stdin.readline()
print(take(), feed.overflows, len(feed.take_notices()), take(), flush=True)
sys.stdin.readline()
print(take(), flush=True)
feed.stop()
"""

# As many directories as a queue of the usual length has no room for; 20,000 files in one are one event.
BURST = """
os.chdir(args[0])
os.mkdir('flat')
for n in range(20_000):
    os.close(os.open(f'flat/{n}', os.O_CREAT | os.O_WRONLY))
if args[1] == 'many':
    for n in range(int(args[2])):
        os.mkdir(str(n))
        os.close(os.open(f'{n}/f', os.O_CREAT | os.O_WRONLY))
"""


@pytest.mark.parametrize(
    ("queue", "burst", "first", "overflows"),
    [("limited", "flat", "2", "0"), ("unlimited", "flat", "2", "0"), ("limited", "many", "everything", "1")],
)
def test_a_burst_while_the_reader_is_stopped_is_told_or_is_an_overflow_that_is_told_once(
    disk, queue, burst, first, overflows
):
    with open("/proc/sys/fs/fanotify/max_queued_events") as setting:
        length = int(setting.read())
    if burst == "many" and length > 100_000:
        pytest.skip(f"fs.fanotify.max_queued_events is {length}: too many directories to make")
    command = [sys.executable, "-c", STOPPED, str(disk / "cache"), str(disk), queue]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            os.kill(child.pid, signal.SIGSTOP)
            by_others(BURST, disk / "cache", burst, length + 100)
            os.kill(child.pid, signal.SIGCONT)
            print(file=child.stdin, flush=True)
            assert child.stdout.readline().split() == [first, overflows, overflows, "0"]
            fill(disk / "cache", "a/later")
            print(file=child.stdin, flush=True)
            assert child.stdout.readline() == "1\n"
        finally:
            child.kill()


def test_an_overflow_asks_for_a_pass_over_every_location(disk):
    with seeing(disk / "cache", disk / "state") as site:
        (channel,) = {each for each, _ in site.feed._all()}
        with open("/proc/sys/fs/fanotify/max_queued_events") as setting:
            length = int(setting.read())
        with channel._lock:  # nobody reads while it is held
            by_others(
                "os.chdir(args[0])\nfor n in range(int(args[1])):\n    os.mkdir(str(n)); os.rmdir(str(n))\n"
                "    os.mkdir(str(n)); os.mkdir(f'{n}/d')",
                disk / "elsewhere",
                length + 100,
            )
        assert until(lambda: site.asks)
        assert site.feed.overflows == 1
        assert site.take() is None


def channel_of(site):
    """The channel of a feed that has one."""
    (channel,) = {each for each, _ in site.feed._all()}
    return channel


def busy(site, path, times=60):
    """A file is written again and again, and that is read each time."""
    for _ in range(times):
        open(path, "w").close()
        channel_of(site).drain()


class TestSilence:
    """Directories outside every location are silenced when they are busy, and heard again in time."""

    @pytest.fixture
    def site(self, disk):
        with seeing(disk / "cache", disk / "state") as site:
            yield site

    def reported(self, site, *paths):
        """Whether anything is in the queue after files were written by somebody else."""
        channel = channel_of(site)
        with channel._lock:
            channel._drain()
            by_others("for path in args: open(path, 'a').close()", *paths)
            return bool(channel._group.read())

    def test_a_busy_directory_outside_is_silenced_in_the_next_pass_and_none_inside_ever(self, site, disk):
        busy(site, disk / "elsewhere/f")
        busy(site, disk / "cache/a/f")
        assert self.reported(site, disk / "elsewhere/f")
        assert site.take() == {"a"}
        assert not self.reported(site, disk / "elsewhere/f", disk / "elsewhere/new")
        assert self.reported(site, disk / "cache/a/f")

    def test_what_is_not_busy_is_not_silenced(self, site, disk):
        busy(site, disk / "elsewhere/f", times=5)
        site.take()
        assert self.reported(site, disk / "elsewhere/f")

    def test_a_silenced_directory_that_is_moved_in_is_measured_altogether_and_heard_again(self, site, disk):
        busy(site, disk / "elsewhere/f")
        site.take()
        by_others(
            "os.rename(args[0], args[1]); open(args[1] + '/unheard', 'w').close()",
            disk / "elsewhere",
            disk / "cache/moved",
        )
        assert site.take() == {"", "moved"}
        fill(disk / "cache", "moved/heard")
        assert site.take() == {"moved"}

    def test_one_below_a_directory_that_is_moved_in_is_heard_again(self, site, disk):
        fill(disk, "elsewhere/deep/f")
        busy(site, disk / "elsewhere/deep/f")
        site.take()
        assert not self.reported(site, disk / "elsewhere/deep/f")
        by_others("os.rename(args[0], args[1])", disk / "elsewhere", disk / "cache/moved")
        assert site.take() == {"", "moved", "moved/deep"}
        fill(disk / "cache", "moved/deep/heard")
        assert site.take() == {"moved/deep"}

    def test_a_silenced_directory_that_becomes_a_location_is_heard_again(self, site, disk):
        busy(site, disk / "elsewhere/f")
        site.take()
        other = Site(disk / "elsewhere", site.feed, site.asked, "cache:/other")
        assert other.take() is None
        fill(disk / "elsewhere", "new")
        assert other.take() == {""}


def test_a_group_that_breaks_is_said_once_and_made_anew(disk):
    with seeing(disk / "cache", disk / "state") as site:
        channel = channel_of(site)
        fd = os.open(disk, os.O_RDONLY)
        os.dup2(fd, channel.fd)  # reading it says EISDIR from now on
        os.close(fd)
        fd = os.open(disk / "cache", os.O_RDONLY)
        assert site.feed.take(KEY, fd) is None
        os.close(fd)
        assert not site.feed.sees(KEY)
        assert len(site.feed.take_notices()) == 1
        assert site.feed.watch(KEY, site.root) is False
        assert site.take() is None
        fill(disk / "cache", "a/new")
        assert site.take() == {"a"}


def test_what_is_remembered_of_directories_is_bounded():
    place = Place(b"/x", (0, 1), b"root", {})
    for number in range(MANY + 1):
        place.note(b"%d" % number, moved=False)
    assert place.dirty is None
    known = Known()
    for number in range(50_000):
        known.is_outside(b"%d" % number)
        known.is_inside(b"%d" % number, ("k",))
    assert max(len(known.outside), len(known.busy), len(known.inside)) <= 20_000


def test_a_chain_of_directories_is_climbed_once_and_not_from_each_of_them(tmp_path):
    """What is known of one on the way holds for all below it: thousands of levels cost what they are."""

    def climbed(path, passed):
        fd = os.open(path, os.O_PATH)
        try:
            return root_above(fd, {inode(tmp_path / "cache")}, passed)
        finally:
            os.close(fd)

    def inode(path):
        found = os.stat(path)
        return found.st_dev, found.st_ino

    (tmp_path / "cache/a/b/c").mkdir(parents=True)
    (tmp_path / "outside/d/e").mkdir(parents=True)
    passed = {}
    assert climbed(tmp_path / "cache/a/b/c", passed) == inode(tmp_path / "cache")
    assert climbed(tmp_path / "outside/d", passed) is None
    known = {inode(tmp_path / "cache" / each): inode(tmp_path / "cache") for each in ("a", "a/b", "a/b/c")}
    assert {each: passed[each] for each in known} == known
    assert passed[inode(tmp_path / "outside")] is None
    # Only somebody who stops there believes it.
    passed[inode(tmp_path / "outside/d")] = inode(tmp_path / "cache")
    assert climbed(tmp_path / "outside/d/e", passed) == inode(tmp_path / "cache")
    assert climbed(tmp_path / "outside/d/e", {}) is None
