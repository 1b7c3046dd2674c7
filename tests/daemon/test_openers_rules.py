"""How long who holds what: ends of processes, the hold, programs that do not count, events that were lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.daemon.opening import KEY, OPEN_AND_CLOSE, Program, feeding, fill, plain

from cachewarden.clock import SetClock
from cachewarden.openers import Form
from cachewarden.openers.book import Book
from cachewarden.openers.lastuses import Moment
from cachewarden.openers.memory import SLACK_NS, Row
from cachewarden.openers.processes import UNKNOWN, Ignored, Process, Who, alive, look
from cachewarden.scan import scan
from cachewarden_policies.policy import DAY, HOUR


@pytest.fixture
def root(tmp_path):
    fill(tmp_path / "cache", "a/1.bin", "b/1.bin", "c/deep/1.bin")
    return tmp_path / "cache"


class TestProcesses:
    """Told apart by pid and start."""

    def test_a_process_is_alive_until_it_ends(self):
        with Program("pass") as program:
            process, _ = look(program.pid)
            assert alive(process)
            assert not alive(process._replace(start_ticks=process.start_ticks - 1))
            program.process.kill()
            os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
            assert not alive(process)  # a zombie opens nothing any more
            assert look(program.pid) is None
        assert not alive(process)

    def test_a_process_whose_leader_has_ended_lives_on_in_its_threads(self):
        code = (
            "import ctypes, sys, threading, time\n"
            "def stay():\n    time.sleep(0.2)\n    sys.stdout.write('done\\n')\n    sys.stdout.flush()\n"
            "    time.sleep(600)\n"
            "threading.Thread(target=stay).start()\n"
            "ctypes.CDLL(None).syscall(60, 0)"
        )
        with Program(code) as program:
            found = look(program.pid)
            assert found is not None
            assert alive(found[0])

    def test_a_process_that_is_not_in_our_namespace_may_live(self):
        assert alive(UNKNOWN)

    def test_a_name_with_parentheses_is_no_riddle(self, tmp_path):
        program = tmp_path / "a) S 1 (b"
        program.symlink_to("/bin/sleep")
        with subprocess.Popen([program, "600"]) as running:
            try:
                process, comm = look(running.pid)
                assert (process.pid, comm) == (running.pid, b"a) S 1 (b")
                assert alive(process)
            finally:
                running.kill()

    @pytest.mark.parametrize(
        ("pattern", "name", "matches"),
        [
            ("restic", b"restic", True),
            ("restic", b"restic2", False),
            ("baloo*", b"baloo_file", True),
            ("tracker-*", b"tracker-miner-f", True),
            ("a-name-that-is-longer", b"a-name-that-is-", True),
            ("a-name-that-is-longer", b"a-name-that-is", False),
            ("", b"", False),
        ],
    )
    def test_programs_are_ignored_by_name(self, pattern, name, matches):
        assert Ignored([pattern] if pattern else []).matches(Process(2**30, 1), name) is matches


class TestBook:
    """A pair holds for so long, and while the process lives."""

    def test_the_hold_ends_so_long_after_the_last_open(self):
        book, living = Book(KEY, hold_ns=HOUR), Process(1, 1)
        book.note(b"e", Who(living, b"x"), Moment(0, 100))
        assert list(book.of(b"e", 100 + HOUR - 1, lambda _: True))
        assert not list(book.of(b"e", 100 + HOUR, lambda _: True))
        book.note(b"e", Who(living, b"x"), Moment(0, 200))
        assert list(book.of(b"e", 100 + HOUR, lambda _: True))

    def test_an_older_open_that_is_heard_of_later_changes_nothing(self):
        book, living = Book(KEY, hold_ns=HOUR), Process(1, 1)
        book.note(b"e", Who(living, b"x"), Moment(7, 200))
        book.note(b"e", Who(living, b"x"), Moment(3, 100))
        assert [each.boot_ns for each in book.of(b"e", 200, lambda _: True)] == [200]
        assert book.recent()[b"e"].ns == 7

    def test_what_is_swept_leaves_no_trace(self):
        book = Book(KEY)
        for pid in range(1000):
            book.note(b"e%d" % (pid % 10), Who(Process(pid, 1), b"x"), Moment(1, 1))
        assert len(book) == 1000
        book.sweep(1, lambda process: process.pid == 7, [b"e7"])
        assert len(book) == 1
        assert set(book.recent()) == {b"e7"}

    def test_whoever_has_ended_is_asked_about_once(self):
        book, asked = Book(KEY), []
        for pid in range(1000):
            book.note(b"e", Who(Process(pid, 1), b"x"), Moment(1, 1))
        for _ in range(3):
            assert not list(book.of(b"e", 1, asked.append))
        assert len(asked) == 1000
        assert len(book) == 0

    def test_whoever_is_found_to_have_ended_leaves_the_record_too(self):
        book, living = Book(KEY), Process(1, 1)
        book.note(b"e", Who(living, b"x"), Moment(1, 1))
        book.take_unsaved()
        assert not list(book.of(b"e", 1, lambda _: False))
        assert [row.pid for row in book.take_unsaved()[1]] == [1]

    def test_what_comes_from_the_record_may_have_been_opened_a_little_later(self):
        book, living = Book(KEY, hold_ns=HOUR), Process(1, 1)
        book.load(Row(KEY, b"e", 1, 1, 100, b"x"))
        assert [each.process for each in book.of(b"e", 100 + HOUR + SLACK_NS - 1, lambda _: True)] == [living]
        assert not list(book.of(b"e", 100 + HOUR + SLACK_NS, lambda _: True))

    def test_a_process_that_opens_all_the_time_is_not_written_all_the_time(self):
        book, living = Book(KEY), Process(1, 1)
        written = 0
        for second in range(3600):
            book.note(b"e", Who(living, b"x"), Moment(1, second * 10**9))
            put, drop = book.take_unsaved()
            written += len(put)
            assert not drop
        assert written == 60


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
class TestFeed:
    """The same with real processes and a clock that is set."""

    def test_an_opener_holds_for_the_policys_time_and_no_longer(self, root):
        clock = SetClock()
        with feeding(root, clock=clock) as site:
            site.index(hold_ns=2 * DAY)
            with Program(OPEN_AND_CLOSE, root / "a/1.bin"):
                assert site.held() == {"a"}
                clock.advance(2 * DAY - 1)
                assert site.held() == {"a"}
                clock.advance(1)
                assert site.held() == set()

    def test_a_wall_clock_that_jumps_releases_nobody(self, root):
        clock = SetClock()
        with feeding(root, clock=clock) as site, Program(OPEN_AND_CLOSE, root / "a/1.bin"):
            assert site.held() == {"a"}
            clock.step(365 * DAY)
            assert site.held() == {"a"}

    def test_ignored_programs_neither_refresh_nor_hold(self, root, tmp_path):
        backup = tmp_path / "restic-of-somebody"
        backup.symlink_to("/bin/bash")
        with (
            feeding(root, ignore=("restic-of-somebody",)) as site,
            subprocess.Popen(
                [backup, "-c", f"read x < {root}/a/1.bin; echo; sleep 600 & wait"],
                stdout=subprocess.PIPE,
                start_new_session=True,
            ) as running,
        ):
            try:
                running.stdout.readline()
                assert site.held() == set()
                assert site.feed.recent(KEY) == {}
            finally:
                os.killpg(running.pid, 9)

    def test_a_command_of_ours_is_no_user(self, root, tmp_path):
        ours = tmp_path / "cachewarden"
        ours.symlink_to("/bin/bash")
        with (
            feeding(root) as site,
            subprocess.Popen(
                [ours, "-c", f"read x < {root}/a/1.bin; echo; sleep 600 & wait"],
                stdout=subprocess.PIPE,
                start_new_session=True,
            ) as running,
        ):
            try:
                running.stdout.readline()
                assert site.held() == set()
            finally:
                os.killpg(running.pid, 9)

    def test_lost_events_make_every_entry_uncertain_for_as_long_as_an_opener_would_hold(self, tmp_path):
        root = tmp_path / "cache"
        limit = int(Path("/proc/sys/fs/fanotify/max_queued_events").read_text())
        for number in range(limit // 100 + 10):
            fill(root, f"a/{number}/f")
        fill(root, "b/f")
        clock = SetClock()
        with feeding(root, clock=clock, unlimited=False) as site:
            code = (
                "import os, sys\nfor child in range(110):\n    if os.fork() == 0:\n"
                "        for name in os.listdir(sys.argv[1]): open(sys.argv[1] + '/' + name + '/f').close()\n"
                "        os._exit(0)\nfor child in range(110): os.wait()"
            )
            with Program(code, root / "a"):
                assert site.held() == {"a", "b"}
            assert site.feed.overflows == 1
            assert any("lost" in notice for notice in site.feed.take_notices())
            clock.advance(7 * DAY - 1)
            assert site.held() == {"a", "b"}
            clock.advance(1)
            assert site.held() == set()

    def test_an_entry_that_cannot_be_looked_at_whole_counts_as_in_use(self, root):
        (root / "a/closed/sub").mkdir(parents=True)
        (root / "a/closed").chmod(0)
        os.chown(root / "a/closed", 1, 1)
        code = (
            "import os, sys\nfrom cachewarden.clock import SystemClock\n"
            "from cachewarden.inventory import Claim, Split\nfrom cachewarden.openers import OpenerFeed\n"
            "from cachewarden.scan import scan\n"
            "feed, fd = OpenerFeed(SystemClock()), os.open(sys.argv[1], os.O_RDONLY)\n"
            "feed.index('k', fd, scan(fd, Split('plain', (Claim(b'a', (b'a',)), Claim(b'b', (b'b',))))))\n"
            "print(*(feed.for_location('k').holds(name) for name in (b'a', b'b')))"
        )
        lost = "-dac_override,-dac_read_search"
        command = [
            "setpriv",
            f"--bounding-set={lost}",
            f"--inh-caps={lost}",
            sys.executable,
            "-c",
            code,
            root,
        ]
        assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "True False\n"

    def test_a_look_that_fails_makes_all_uncertain_and_forgets_nobody(self, root):
        with feeding(root) as site, Program(OPEN_AND_CLOSE, root / "a/1.bin"):
            assert site.held() == {"a"}
            fd = os.open(root, os.O_RDONLY)
            inventory = scan(fd, plain(root))
            os.close(fd)
            assert site.feed.index(KEY, fd, inventory) is Form.FILESYSTEM
            assert site.feed.for_location(KEY).holds(b"b")
            assert site.feed.take_notices()
            site.index()
            assert site.held() == {"a"}

    def test_a_location_that_goes_and_comes_back_keeps_its_openers(self, root):
        with feeding(root) as site, Program(OPEN_AND_CLOSE, root / "a/1.bin") as reader:
            assert site.held() == {"a"}
            site.feed.retain([])
            assert site.feed.descriptors() == {}
            site.index()
            assert site.held() == {"a"}
            reader.end()
            site.feed.retain([])
            site.feed.sweep()
            site.index()
            assert site.held() == set()

    def test_unknown_means_in_use(self, root):
        with feeding(root) as site:
            asked = site.feed.for_location(KEY)
            assert not asked.holds(b"a")
            assert asked.holds(b"never indexed")
            assert site.feed.for_location("no such location").holds(b"a")
            assert site.feed.openers("no such location", b"a") == ()
