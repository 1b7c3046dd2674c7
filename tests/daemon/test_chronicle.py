"""What the service says of its passes: each thing once, and nothing in every pass."""

import json
import os
import time

import pytest
from tests.daemon.passes import DAY, Field, holding, limit, policy

from cachewarden.clock import SetClock
from cachewarden.logs import configure
from cachewarden.metrics import Metrics
from cachewarden.report import EvictedEntry, FailedEntry, Holder, LocationReport, SparedEntry
from cachewarden.service.chronicle import Chronicle
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import SECOND
from cachewarden_policies.reasons import EvictReason, KeepReason, LastUseSource, Outcome

SPEC = LocationSpec("cache", b"/srv/cache", policy())
EVICTED = EvictedEntry(b"e", 4096, 4096, EvictReason.IDLE, 1, LastUseSource.RELATIME)


def chronicle(clock):
    """A chronicle whose counters nobody reads."""
    return Chronicle(Metrics(list), clock, lambda _: None, lambda _: None, lambda _, __: None)


@pytest.fixture
def told(tmp_path):
    """What was logged so far, as a list of events."""
    with open(tmp_path / "log", "w") as stream:
        configure("json", "info", stream)
        yield lambda: [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]


class Day(Field):
    """A location over its limit in which nothing can go, and of which every pass finds something else."""

    def __init__(self, base):
        super().__init__(base)
        self.names_held = [str(self.entry(f"e{number}")) for number in range(4)]
        self.turn = 0

    def pass_by(self):
        """What people and programs do between two passes, and a pass."""
        self.turn += 1
        self.clock.advance(3600 * SECOND)
        for number, name in enumerate(self.names_held):  # one, two or three have times in the future
            at = self.clock.wall_ns() + (DAY if number <= self.turn % 3 else -9 * DAY)
            os.utime(f"{name}/f", ns=(at, at))
        return self.run(policy(limits=limit(1)))


def test_a_day_of_passes_over_a_location_that_stays_short_says_it_once(told, tmp_path):
    day = Day(tmp_path)
    day.heard = journal = chronicle(day.clock)
    day.restart()
    with holding("files = [open(name + '/f', 'rb') for name in sys.argv[1:]]", *day.names_held):
        found = {warning for _ in range(2) for warning in day.pass_by().warnings}
        begin = told()
        found.update(day.pass_by().warnings)
        assert len(found) >= 3, "the warnings differ from pass to pass"
        events = [each["event"] for each in begin]
        assert events.count("pass ended") == 1, events
        assert events.count("spared") == 4, events
        for _ in range(24):
            report = day.pass_by()
    assert str(report.outcome) == "short"
    assert len(day.names()) == 4
    assert told() == begin
    journal.spared(day.spec(policy()), SparedEntry(b"e0", 1, KeepReason.PINNED), rolled_back=False)
    assert len(told()) == len(begin) + 1, "something new is said"


def test_a_day_of_passes_in_which_nothing_is_to_be_done_says_nothing(told, tmp_path):
    field = Field(tmp_path)
    field.entry("kept")
    field.heard = chronicle(field.clock)
    field.restart()
    field.run(policy(limits=limit(9)))
    begin = told()
    for _ in range(48):
        field.clock.advance(1800 * SECOND)
        field.run(policy(limits=limit(9)))
    assert told() == begin


def test_each_eviction_and_the_pass_that_made_it_have_one_line(told, tmp_path):
    field = Field(tmp_path)
    for number in range(3):
        field.entry(f"e{number}", days=9 - number)
    field.heard = chronicle(field.clock)
    field.restart()
    field.run(policy(limits=limit(1)))
    events = [(each["event"], each.get("entry"), each["location"]) for each in told()]
    assert events == [("evicted", "e0", "root"), ("evicted", "e1", "root"), ("pass ended", None, "root")]
    assert told()[-1].items() >= {"outcome": "trimmed", "evicted": 2, "spared": 0, "failed": 0}.items()


def test_who_comes_and_goes_from_pass_to_pass_is_told_once_a_day(told):
    clock = SetClock()
    journal = chronicle(clock)
    for turn in range(300):
        reason = KeepReason.IN_USE if turn % 2 else KeepReason.LIVE_OPENER
        holder = Holder("open", 1000 + turn, "python")
        journal.spared(SPEC, SparedEntry(b"e", 4096, reason, (holder,)), rolled_back=False)
        clock.advance(60 * SECOND)
    assert [each["reason"] for each in told()] == ["live_opener", "in_use"]
    clock.advance(2 * DAY)
    journal.spared(SPEC, SparedEntry(b"e", 4096, KeepReason.IN_USE), rolled_back=False)
    assert len(told()) == 3


def test_an_entry_that_cannot_go_is_one_line_and_one_record_however_often_it_is_tried(told, tmp_path):
    journal = chronicle(SetClock())
    journal.audit_to(os.fsencode(tmp_path / "audit"))
    for _ in range(50):
        journal.failed(SPEC, FailedEntry(b"e", 30, b"/srv/cache/e"))
    journal.failed(SPEC, FailedEntry(b"e", 5, b"/srv/cache/e"))
    assert [each["errno"] for each in told()] == ["EROFS", "EIO"]
    assert len((tmp_path / "audit").read_text().splitlines()) == 2


def test_passes_that_fail_again_for_the_same_reason_are_one_line(told):
    journal = chronicle(SetClock())

    def ended(*errnos):
        failed = tuple(FailedEntry(b"e", number, b"/srv/cache/e") for number in errnos)
        report = LocationReport("cache", b"/srv/cache", "plain", Outcome.SHORT, failed=failed)
        journal.finished(SPEC, report, 0.1)

    for errnos in ((30,), (30, 30), (30,), (5,), (5,), (), (), (5,)):
        ended(*errnos)
    assert [each["failed"] for each in told()] == [1, 1, 0, 1]


def test_an_audit_file_that_takes_nothing_is_said_once_and_what_is_missing_is_counted_in_it(told, tmp_path):
    journal = chronicle(SetClock(time.time_ns()))
    path = tmp_path / "folder" / "audit"
    journal.audit_to(os.fsencode(path))
    for _ in range(20):
        journal.evicted(SPEC, EVICTED)
    path.parent.mkdir()
    for _ in range(2):
        journal.evicted(SPEC, EVICTED)
    said = [each["event"] for each in told() if each["event"] != "evicted"]
    assert said == [
        "the audit file cannot be written, skipping",
        "the audit file is written again; it tells how many lines are missing",
    ]
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [each["event"] for each in records] == ["lost", "evicted", "evicted"]
    assert records[0]["records"] == 20
    assert (
        records[1].items()
        >= {"by": "cachewarden run", "uid": os.getuid(), "entry": "e", "location": "cache"}.items()
    )


def test_a_reload_forgets_no_line_that_is_missing_in_the_audit_file(told, tmp_path):
    journal = chronicle(SetClock(time.time_ns()))
    path = tmp_path / "folder" / "audit"
    for _ in range(3):
        journal.audit_to(os.fsencode(path))
        journal.evicted(SPEC, EVICTED)
    path.parent.mkdir()
    journal.evicted(SPEC, EVICTED)
    assert json.loads(path.read_text().splitlines()[0])["records"] == 3


def test_an_audit_file_that_is_no_longer_asked_for_is_not_called_written_again(told, tmp_path):
    journal = chronicle(SetClock(time.time_ns()))
    for path in (os.fsencode(tmp_path / "folder/audit"), None, os.fsencode(tmp_path / "audit")):
        journal.audit_to(path)
        journal.evicted(SPEC, EVICTED)
    said = [each["event"] for each in told() if each["event"] != "evicted"]
    assert said == ["the audit file cannot be written, skipping"]
