"""A restart of the service forgets nobody who still runs, and remembers nobody who does not."""

import contextlib
import os
import threading

import pytest
from tests.daemon.opening import KEY, OPEN_AND_CLOSE, Program, Site, feeding, fill, until

from cachewarden.clock import SystemClock, boot_id
from cachewarden.ledger import open_ledger
from cachewarden.openers import OpenerFeed, Row, Setting
from cachewarden.openers.processes import look

NOW = 1_700_000_000 * 10**9


@pytest.fixture
def root(tmp_path):
    fill(tmp_path / "cache", "a/1.bin", "b/1.bin")
    return tmp_path / "cache"


@contextlib.contextmanager
def ledger(tmp_path):
    with open_ledger(os.fsencode(tmp_path / "state"), NOW) as opened:
        yield opened.openers


def test_rows_come_back_as_they_were_written(tmp_path):
    row = Row(KEY, b"e\xff\n", 17, 12345, 99, b"a\xffb")
    with ledger(tmp_path) as kept:
        kept.save("boot", [row, Row(KEY, b"other", 17, 12345, 1, b"")], [], NOW)
        kept.save("boot", [row._replace(opened_ns=100)], [Row(KEY, b"other", 17, 12345, 0, b"")], NOW)
    with ledger(tmp_path) as kept:
        assert list(kept.load("boot")) == [row._replace(opened_ns=100)]
        kept.save("boot", [row._replace(location="other")], [], NOW)
        assert list(kept.load("boot", KEY)) == [row._replace(opened_ns=100)]
        assert list(kept.load("another boot")) == []


def test_rows_of_other_boots_go_with_the_next_write(tmp_path):
    with ledger(tmp_path) as kept:
        kept.save("old", [Row(KEY, b"e", 17, 12345, 99, b"")], [], NOW)
    with ledger(tmp_path) as kept:
        kept.save("new", [Row(KEY, b"e", 18, 12345, 99, b"")], [], NOW)
        assert list(kept.load("old")) == []
        assert len(list(kept.load("new"))) == 1


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_what_one_feed_saw_the_next_one_knows(root, tmp_path):
    with Program(OPEN_AND_CLOSE, root / "a/1.bin") as reader, ledger(tmp_path) as kept:
        with feeding(root, memory=kept) as site:
            assert site.held() == set()  # it opened before anybody looked
        with feeding(root, memory=kept) as site, Program(OPEN_AND_CLOSE, root / "b/1.bin") as other:
            assert site.held() == {"b"}
            site.feed.save()
            with feeding(root, memory=kept) as again:
                assert again.pids("b") == {other.pid}
        with feeding(root, memory=kept) as site:
            assert site.held() == set()
        reader.end()


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_what_a_service_knows_is_asked_for_when_we_see_opens_ourselves(root, tmp_path):
    """Before that, whoever opens something in between would be known to nobody."""
    with Program(OPEN_AND_CLOSE, root / "a/1.bin") as reader, ledger(tmp_path) as kept:
        feed = []

        def ask():
            assert feed[0].descriptors()  # it listens by now
            process, comm = look(reader.pid)
            row = Row(KEY, b"a", *process, SystemClock().monotonic_ns(), comm)
            kept.save(boot_id(), [row, row._replace(location="elsewhere", entry=b"b")], [], NOW)

        feed.append(OpenerFeed(SystemClock(), kept, Setting(ask=ask)))
        site = Site(root, feed[0])
        try:
            site.index()
            assert (site.held(), site.pids("a")) == ({"a"}, {reader.pid})
        finally:
            feed[0].stop()


class SlowClock(SystemClock):
    """Keeps the threads waiting that ask it for the time of day."""

    def __init__(self):
        self.goes, self.asked = threading.Event(), threading.Event()
        self.goes.set()

    def wall_ns(self):
        self.asked.set()
        assert self.goes.wait(20)
        return super().wall_ns()


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_whoever_saves_ends_when_what_others_are_saving_is_saved(root, tmp_path):
    """A command reads the ledger then, while the thread of the service is on the way there."""
    clock = SlowClock()
    with (
        ledger(tmp_path) as kept,
        feeding(root, memory=kept, clock=clock) as site,
        Program(OPEN_AND_CLOSE, root / "a/1.bin") as reader,
    ):
        site.feed.drain()
        clock.asked.clear()
        clock.goes.clear()
        found = []
        first = threading.Thread(target=site.feed.save)
        first.start()
        assert clock.asked.wait(20)
        # The first has taken what there is to save, and nothing is left for the second.
        second = threading.Thread(target=lambda: (site.feed.save(), found.extend(kept.load(boot_id()))))
        clock.asked.clear()
        second.start()
        assert not clock.asked.wait(0.5)
        clock.goes.set()
        first.join()
        second.join()
        assert [row[1:3] for row in found] == [(b"a", reader.pid)]


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_who_has_ended_is_removed_from_the_record(root, tmp_path):
    with ledger(tmp_path) as kept, feeding(root, memory=kept) as site:
        with Program(OPEN_AND_CLOSE, root / "a/1.bin"):
            assert site.held() == {"a"}
            site.feed.save()
            assert len(list(kept.load(boot_id()))) == 1
        site.feed.sweep()
        site.feed.save()
        assert list(kept.load(boot_id())) == []


def test_a_pid_that_came_again_is_somebody_else(root, tmp_path):
    with Program("pass") as stranger:
        process, comm = look(stranger.pid)
        with ledger(tmp_path) as kept:
            row = Row(KEY, b"a", process.pid, process.start_ticks - 1, SystemClock().monotonic_ns(), comm)
            kept.save(boot_id(), [row], [], NOW)
            with feeding(root, memory=kept) as site:
                assert site.held() == set()


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_the_thread_writes_without_being_asked(root, tmp_path):
    with ledger(tmp_path) as kept, feeding(root, memory=kept, start=True) as site:
        with Program(OPEN_AND_CLOSE, root / "a/1.bin") as reader:
            assert until(lambda: [row[1:3] for row in kept.load(boot_id())] == [(b"a", reader.pid)])
        assert site.held() == set()


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_a_group_that_is_handed_on_misses_nothing_between_two_services(root):
    with feeding(root) as site:
        kept = {label: os.dup(fd) for label, fd in site.feed.descriptors().items()}
    assert all(":" not in label for label in kept)
    # Nobody reads while this program opens something.
    with Program(OPEN_AND_CLOSE, root / "a/1.bin") as reader, feeding(root, inherited=kept) as site:
        assert site.held() == {"a"}
        assert site.pids("a") == {reader.pid}


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_what_is_handed_on_and_is_no_such_group_is_closed(root):
    with feeding(root) as site:
        labels = list(site.feed.descriptors())
    strange = {label: os.open(os.devnull, os.O_RDONLY) for label in [*labels, "fanotify-9.9-opens"]}
    feed = OpenerFeed(SystemClock(), setting=Setting(inherited=strange))
    site = Site(root, feed)
    site.index()
    feed.close_inherited()
    with Program(OPEN_AND_CLOSE, root / "a/1.bin"):
        assert site.held() == {"a"}
    feed.stop()
    for fd in strange.values():
        with pytest.raises(OSError, match="descriptor"):
            os.fstat(fd)
