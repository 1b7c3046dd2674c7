"""Last uses on their way to the ledger: who it was, in batches, between passes, and past indexers."""

import os
import subprocess
import sys

import pytest
from tests.daemon.opening import KEY, OPEN_AND_CLOSE, Program, feeding, fill, plain, until

from cachewarden.clock import SetClock, SystemClock
from cachewarden.ledger import Passing, Record, Use, open_ledger
from cachewarden.openers.acquaintances import Acquaintances, Standing
from cachewarden.openers.lastuses import LastUses, Moment, Recent
from cachewarden.openers.memory import SLACK_NS
from cachewarden.openers.processes import UNKNOWN, Ignored, Process, Who, look
from cachewarden.openers.samples import ProcSamples
from cachewarden.scan import scan
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import DAY, SECOND, Policy
from cachewarden_policies.reasons import LastUseSource

NOW = 1_700_000_000 * SECOND
SPEC = LocationSpec("cache", b"/location", Policy())
assert SPEC.key == KEY


@pytest.fixture
def root(tmp_path):
    fill(tmp_path / "cache", "a/1.bin", "b/1.bin", "c/deep/1.bin")
    return tmp_path / "cache"


@pytest.fixture
def ledger(tmp_path):
    with open_ledger(os.fsencode(tmp_path / "state"), NOW) as opened:
        opened.seen(SPEC, [(name, 1) for name in (b"a", b"b", b"c")], NOW)
        yield opened


class TestLastUses:
    """What is written, and how often."""

    def test_an_entry_that_is_used_all_the_time_is_written_once_a_minute_and_at_the_end(self):
        uses, written = LastUses(), []
        for second in range(3600):
            uses.note(b"e", Moment(NOW + second * SECOND, second), Who(Process(7, 1), b"x"))
            written += uses.take_news(every=False).used.values()
        assert len(written) == 60
        assert uses.take_news(every=True).used == {b"e": Recent(NOW + 3599 * SECOND, 7, b"x")}
        assert not uses.take_news(every=True).used

    def test_a_use_that_is_heard_of_late_is_no_news(self):
        uses = LastUses()
        uses.note(b"e", Moment(NOW, 2), Who(Process(7, 1), b"x"))
        uses.take_news(every=True)
        uses.note(b"e", Moment(NOW - 1, 1), Who(Process(8, 1), b"y"))
        assert not uses.take_news(every=True).used

    def test_an_indexers_run_begins_once_and_goes_on(self):
        uses = LastUses()
        uses.measured({b"e": NOW - 9 * DAY})
        uses.passed(b"e", NOW, NOW + SECOND)
        (first,) = uses.take_news(every=False).passed.values()
        assert first.ns < NOW
        assert first[1:] == (NOW + SECOND + DAY, NOW - 9 * DAY)
        uses.measured({b"e": NOW + SECOND})  # its own read
        uses.passed(b"e", NOW + DAY, NOW + DAY + SECOND)
        (again,) = uses.take_news(every=False).passed.values()
        assert again == first._replace(until_ns=NOW + DAY + SECOND + DAY)

    def test_an_access_time_after_an_indexers_run_is_honest_and_the_next_run_begins_anew(self):
        uses = LastUses()
        uses.passed(b"e", NOW, NOW)
        uses.measured({b"e": NOW + 2 * DAY})
        uses.passed(b"e", NOW + 3 * DAY, NOW + 3 * DAY)
        (passing,) = uses.take_news(every=True).passed.values()
        assert passing.atime_ns == NOW + 2 * DAY
        assert passing.ns > NOW + 2 * DAY

    def test_an_indexer_that_reads_for_hours_is_not_written_for_each_file(self):
        uses = LastUses()
        written = 0
        for second in range(600):
            uses.passed(b"e", NOW + second * SECOND, NOW + second * SECOND)
            written += len(uses.take_news(every=False).passed)
        assert written == 600 * SECOND // SLACK_NS

    def test_what_is_no_entry_any_more_is_forgotten(self):
        uses = LastUses()
        for name in (b"e", b"f"):
            uses.note(name, Moment(NOW, 1), Who(Process(7, 1), b"x"))
            uses.passed(name, NOW, NOW)
        uses.forget_all_but([b"f"])
        news = uses.take_news(every=True)
        assert (set(news.used), set(news.passed)) == ({b"f"}, {b"f"})


class TestAcquaintances:
    """Who had a pid a moment ago."""

    def test_a_process_that_was_met_is_known_for_a_moment_after_its_end(self):
        known = Acquaintances(Ignored(()), os.getpid())
        with Program("pass") as program:
            met = known.meet(program.pid, 0)
        assert (met.standing, met.who.comm, met.who.uid) == (Standing.RUNS, met.who.comm, os.geteuid())
        after = known.meet(program.pid, 5 * SECOND)
        assert after == met._replace(standing=Standing.ENDED)
        late = known.meet(program.pid, 3600 * SECOND)
        assert (late.standing, late.who.comm, late.who.uid) == (Standing.ENDED, b"", None)

    def test_a_server_that_gave_its_rights_up_is_known_by_the_user_that_it_is_now(self, needs_root):
        known = Acquaintances(Ignored(()), os.getpid())
        code = "import os, sys\nprint('root', flush=True)\nsys.stdin.read()\nos.setuid(65534)"
        with Program(code, stdin=subprocess.PIPE, ready=b"root\n") as program:
            assert known.meet(program.pid, 0).who.uid == 0
            program.process.stdin.close()
            assert program.process.stdout.readline() == b"done\n"
            assert known.meet(program.pid, 0).who.uid == 65534

    def test_an_indexer_passes_also_when_it_has_just_ended(self, tmp_path):
        (tmp_path / "updatedb").symlink_to("/bin/sleep")
        known = Acquaintances(Ignored(("updatedb",)), os.getpid())
        with subprocess.Popen([tmp_path / "updatedb", "600"]) as indexer:
            until(lambda: look(indexer.pid)[1] == b"updatedb")
            assert known.meet(indexer.pid, 0).standing is Standing.PASSES
            indexer.kill()
        assert known.meet(indexer.pid, SECOND).standing is Standing.PASSES

    def test_a_pid_whose_process_is_known_to_have_ended_is_not_taken_for_its_next_owner(self):
        known = Acquaintances(Ignored(()), os.getpid())
        with Program("pass") as program:
            assert known.meet(program.pid, 0, ended=True).standing is Standing.ENDED

    def test_ourselves_and_processes_above_our_namespace(self):
        known = Acquaintances(Ignored(()), os.getpid())
        assert known.meet(os.getpid(), 0).standing is Standing.OURS
        assert known.meet(0, 0) == (known.meet(0, 0).who, Standing.RUNS)
        assert known.meet(0, 0).who.process == UNKNOWN

    def test_thousands_of_processes_are_forgotten_again(self):
        known = Acquaintances(Ignored(()), 1)
        for number in range(20):
            with Program("pass") as program:
                known.meet(program.pid, number * 100 * SECOND)
        known._room = 0
        known.meet(os.getpid(), 2000 * SECOND)
        assert set(known._known) == {os.getpid()}


class TestLedger:
    """What is on record."""

    def save(self, ledger, **changes):
        row = {"uses": {b"a": (NOW + 5, 7, b"cat", 0)}, "passed": {}} | changes
        ledger.openers.save_uses(KEY, "fanotify", row["uses"], row["passed"], NOW + 9)

    def test_a_use_between_passes_is_on_record_with_who_it_was(self, ledger):
        self.save(ledger)
        assert ledger.record(KEY, b"a") == Record(
            NOW, False, 1, NOW + 5, LastUseSource.OPENS, (7, b"cat", 0), "fanotify"
        )

    def test_what_was_evicted_does_not_come_back_by_a_use_that_is_heard_of_late(self, ledger):
        self.save(ledger, uses={b"evicted": (NOW + 5, 7, b"cat", 0)}, passed={b"evicted": (1, 2, 3)})
        assert ledger.record(KEY, b"evicted") is None
        assert set(ledger.records(KEY)) == {b"a", b"b", b"c"}

    def test_a_later_use_that_names_nobody_leaves_no_name_behind(self, ledger):
        self.save(ledger)
        ledger.record_use(SPEC, {b"a": Use(NOW + 6, LastUseSource.OPENS)}, NOW + 9)
        assert ledger.record(KEY, b"a").opener is None

    def test_a_passing_that_goes_on_keeps_its_beginning_also_over_a_restart_of_the_service(self, ledger):
        self.save(ledger, passed={b"a": (NOW, NOW + DAY, NOW - 9 * DAY)})
        # A service that started in the middle of it takes an access time of it for the one before.
        self.save(ledger, passed={b"a": (NOW + 60, NOW + DAY + 60, NOW + 1)})
        assert ledger.record(KEY, b"a").passing == Passing(NOW, NOW + DAY + 60, NOW - 9 * DAY)
        self.save(ledger, passed={b"a": (NOW + 5 * DAY, NOW + 6 * DAY, NOW + 3 * DAY)})
        assert ledger.record(KEY, b"a").passing == Passing(NOW + 5 * DAY, NOW + 6 * DAY, NOW + 3 * DAY)
        assert ledger.record(KEY, b"a").last_use_ns is not None

    def test_more_entries_than_are_asked_for_one_by_one(self, ledger):
        names = [b"e%d" % number for number in range(250)]
        ledger.seen(SPEC, [(name, 1) for name in names], NOW)
        self.save(ledger, uses=dict.fromkeys(names, (NOW + 5, 7, b"cat", 0)))
        assert all(ledger.records(KEY)[name].last_use_ns == NOW + 5 for name in names)


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
class TestFeed:
    """The same with real processes."""

    def test_the_thread_brings_a_use_to_the_ledger_without_a_pass(self, root, ledger):
        with (
            feeding(root, memory=ledger.openers, start=True),
            Program(OPEN_AND_CLOSE, root / "a/1.bin") as it,
        ):
            record = until(lambda: (found := ledger.record(KEY, b"a")).last_use_ns and found)
            assert record.opener.pid == it.pid
            assert record.opener.name == os.path.basename(sys.executable)[:15].encode()
            assert record.opener.uid == os.geteuid()
            assert record.seen_by == "fanotify"
            assert ledger.record(KEY, b"b").last_use_ns is None

    def test_a_program_of_a_few_moments_is_named(self, root, ledger):
        """It is met while it lives, because the first events after a rest are read at once."""
        code = f"for i in 1 2 3 4 5 6 7 8; do read x < {root}/a/1.bin; sleep 0.05; done; :"
        with feeding(root, memory=ledger.openers, start=True) as site:
            subprocess.run(["/bin/bash", "-c", code], check=False)
            until(lambda: site.feed.recent(KEY))
            site.feed.save()
            assert ledger.record(KEY, b"a").opener.name in (b"bash", b"sleep")

    def test_stopping_brings_everything_to_the_ledger(self, root, ledger):
        with feeding(root, memory=ledger.openers) as site:
            for _ in range(2):
                subprocess.run(["cat", root / "a/1.bin"], stdout=subprocess.DEVNULL, check=True)
                site.feed.drain()
                site.feed.save(every=False)
            seen_ns = site.feed.recent(KEY)[b"a"].ns
            assert ledger.record(KEY, b"a").last_use_ns < seen_ns
        assert ledger.record(KEY, b"a").last_use_ns == seen_ns

    def test_a_location_that_goes_away_takes_no_use_along(self, root, ledger):
        with feeding(root, memory=ledger.openers) as site:
            subprocess.run(["cat", root / "a/1.bin"], stdout=subprocess.DEVNULL, check=True)
            site.feed.drain()
            site.feed.retain([])
            site.feed.sweep()
            assert ledger.record(KEY, b"a").last_use_ns is not None

    @pytest.mark.parametrize("name", ["updatedb", "bash"])
    def test_an_indexer_leaves_a_trace_and_no_use(self, root, ledger, tmp_path, name):
        program = tmp_path / name
        program.symlink_to("/bin/bash")
        clock = SystemClock()
        with feeding(root, memory=ledger.openers, ignore=("updatedb",), start=True) as site:
            before_ns = clock.wall_ns()
            code = f"for f in {root}/*/*; do read x < $f; done; sleep 0.3; :"
            subprocess.run([program, "-c", code], check=False)
            site.feed.drain()
            site.feed.save()
            records = ledger.records(KEY)
        passed = {entry for entry, record in records.items() if record.passing is not None}
        used = {entry for entry, record in records.items() if record.last_use_ns is not None}
        if name == "updatedb":
            assert (passed, used) == ({b"a", b"b"}, set())
            passing = records[b"a"].passing
            assert passing.ns <= before_ns + SECOND
            assert passing.until_ns > before_ns + DAY
            assert passing.atime_ns < before_ns
        else:
            assert (passed, used) == (set(), {b"a", b"b"})


class TestSamples:
    """The weaker form writes too."""

    def test_who_a_sample_meets_is_on_record(self, root, ledger):
        samples = ProcSamples(SetClock(wall_ns=NOW + 5), memory=ledger.openers)
        fd = os.open(root, os.O_RDONLY)
        with Program("import sys\nkept = open(sys.argv[1])", root / "a/1.bin") as reader:
            samples.index(KEY, fd, scan(fd, plain(root)))
            samples.save()
        os.close(fd)
        record = ledger.record(KEY, b"a")
        assert (record.opener.pid, record.opener.uid) == (reader.pid, os.geteuid())
        assert record.seen_by == "proc"
        assert record.last_use_ns == NOW + 5
