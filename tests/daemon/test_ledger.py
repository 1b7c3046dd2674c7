"""What the ledger remembers: entries, uses, evictions; and who may ask it at once."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from cachewarden.ledger import EvictionRow, Record, Use, open_ledger
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import DAY, HOUR, SECOND, Policy
from cachewarden_policies.reasons import EvictReason, LastUseSource

NOW = 1_700_000_000 * SECOND
HUB = LocationSpec("hub", b"/data/hub", Policy())
ODD = LocationSpec("hub", b"/data/\xff\n", Policy())
ODD_NAMES = [
    b"models--\xff\xfe",
    b"a\nERROR quota daemon disabled",
    b'q"uo\\te',
    "e\u0301".encode(),
    "\u00e9".encode(),
    b" lead",
    b"-rf",
    b"x" * 255,
]


@pytest.fixture
def state_dir(tmp_path):
    return os.fsencode(tmp_path / "state")


@pytest.fixture
def ledger(state_dir):
    with open_ledger(state_dir, NOW) as opened:
        yield opened


def evicted(name, size=100, *, time=NOW, location=HUB, outcome="removed"):
    return EvictionRow(
        time_ns=time,
        location=location.key,
        name=location.name,
        path=location.path,
        entry=name,
        bytes=size,
        freed_bytes=size,
        reason=EvictReason.IDLE,
        outcome=outcome,
        last_use_ns=NOW - DAY,
        last_use_source=LastUseSource.ATIME,
    )


def test_what_the_first_scan_finds_was_there_before_us_and_what_comes_later_appeared(ledger):
    first = ledger.seen(HUB, [(b"old", 1)], NOW)
    second = ledger.seen(HUB, [(b"old", 1), (b"new", 2)], NOW + HOUR)
    assert first.records == {b"old": Record(NOW, False, 1)}
    assert second.records == {b"old": Record(NOW, False, 1), b"new": Record(NOW + HOUR, True, 2)}


def test_in_a_location_that_was_empty_at_first_everything_appeared(ledger):
    ledger.seen(HUB, [], NOW)
    assert ledger.seen(HUB, [(b"new", 2)], NOW + 1).records[b"new"].appeared


def test_a_restart_keeps_what_was_seen_first_and_used_last(state_dir):
    with open_ledger(state_dir, NOW) as ledger:
        ledger.seen(HUB, [(b"a", 1), (b"b", 2)], NOW)
        ledger.record_use(HUB, {b"a": Use(NOW + 5, LastUseSource.OPENS)}, NOW + 6)
    with open_ledger(state_dir, NOW + DAY) as ledger:
        records = ledger.seen(HUB, [(b"a", 1), (b"b", 2)], NOW + DAY).records
    assert records[b"a"] == Record(NOW, False, 1, NOW + 5, LastUseSource.OPENS)
    assert records[b"b"] == Record(NOW, False, 2)


def test_names_are_bytes_and_all_eight_survive_a_restart(state_dir):
    entries = [(name, size) for size, name in enumerate(ODD_NAMES)]
    with open_ledger(state_dir, NOW) as ledger:
        ledger.seen(ODD, entries, NOW)
    with open_ledger(state_dir, NOW + DAY) as ledger:
        assert ledger.records(ODD.key) == {name: Record(NOW, False, size) for name, size in entries}


def test_locations_of_one_name_are_told_apart_by_their_paths(ledger):
    ledger.seen(HUB, [(b"same", 1)], NOW)
    ledger.seen(ODD, [(b"same", 2)], NOW + 1)
    assert ledger.records(HUB.key)[b"same"].bytes == 1
    assert ledger.records(ODD.key)[b"same"].bytes == 2


def test_a_vanished_entry_that_comes_back_is_a_new_one(ledger):
    ledger.seen(HUB, [(b"a", 1)], NOW)
    ledger.record_use(HUB, {b"a": Use(NOW, LastUseSource.OPENS)}, NOW)
    ledger.seen(HUB, [], NOW + 1)
    assert ledger.seen(HUB, [(b"a", 1)], NOW + 2).records[b"a"] == Record(NOW + 2, True, 1)


def test_an_incomplete_scan_forgets_nobody(ledger):
    ledger.seen(HUB, [(b"a", 1), (b"b", 1)], NOW)
    ledger.seen(HUB, [(b"a", 1)], NOW + 1, complete=False)
    assert ledger.records(HUB.key)[b"b"] == Record(NOW, False, 1)


def test_a_changed_size_changes_nothing_else(ledger):
    ledger.seen(HUB, [(b"a", 1)], NOW)
    ledger.seen(HUB, [(b"a", 7)], NOW + 1)
    assert ledger.records(HUB.key) == {b"a": Record(NOW, False, 7)}


def test_an_older_use_does_not_replace_a_newer_one(ledger):
    ledger.seen(HUB, [(b"a", 1)], NOW)
    for ns in (NOW + 5, NOW + 3):
        ledger.record_use(HUB, {b"a": Use(ns, LastUseSource.OPENS)}, NOW + 6)
    assert ledger.records(HUB.key)[b"a"].last_use_ns == NOW + 5


def test_a_use_of_an_entry_that_no_scan_found_yet_is_not_lost(ledger):
    ledger.seen(HUB, [], NOW)
    ledger.record_use(HUB, {b"new": Use(NOW + 5, LastUseSource.OPENS)}, NOW + 5)
    record = ledger.seen(HUB, [(b"new", 9)], NOW + 60).records[b"new"]
    assert record == Record(NOW + 5, True, 9, NOW + 5, LastUseSource.OPENS)


def test_an_access_time_beyond_the_year_2262_is_taken(ledger):
    ledger.record_use(HUB, {b"a": Use(2**64, LastUseSource.ATIME)}, NOW)
    ledger.record_evictions([evicted(b"a")], NOW)
    assert ledger.trouble is None


def test_history_names_the_newest_first_and_the_last_victim_of_a_pass_before_its_first(ledger):
    ledger.record_evictions([evicted(b"a"), evicted(b"b")], NOW)
    ledger.record_evictions([evicted(b"\xff", time=NOW + 1, location=ODD)], NOW + 1)
    assert [row.entry for row in ledger.history()] == [b"\xff", b"b", b"a"]
    assert [row.entry for row in ledger.history(2)] == [b"\xff", b"b"]
    assert ledger.history()[2] == evicted(b"a")


def test_history_can_be_asked_for_one_location(ledger):
    other = LocationSpec("other", b"/other", Policy())
    ledger.record_evictions([evicted(b"a"), evicted(b"b", location=other)], NOW)
    assert [row.entry for row in ledger.history(location="other")] == [b"b"]


def test_a_row_of_history_is_shown_escaped():
    assert evicted(b"\xff\n", location=ODD).to_json() == {
        "time": "2023-11-14T22:13:20Z",
        "location": "hub",
        "path": "/data/\\xff\\n",
        "entry": "\\xff\\n",
        "bytes": 100,
        "freed_bytes": 100,
        "reason": "idle",
        "outcome": "removed",
        "last_use": "2023-11-13T22:13:20Z",
        "owner": None,
    }


def test_what_comes_back_within_seven_days_is_counted_once(ledger):
    ledger.seen(HUB, [(b"a", 100), (b"b", 10)], NOW)
    ledger.record_evictions([evicted(b"a"), evicted(b"b")], NOW)
    ledger.seen(HUB, [], NOW + 1)
    back = ledger.seen(HUB, [(b"a", 120)], NOW + 6 * DAY)
    assert back.refetched == ((b"a", 120),)
    assert back.refetched_bytes == 120
    assert ledger.seen(HUB, [], NOW + 6 * DAY + 1).refetched == ()
    assert ledger.seen(HUB, [(b"a", 120)], NOW + 6 * DAY + 2).refetched == ()
    assert ledger.seen(HUB, [(b"b", 10)], NOW + 7 * DAY + 1).refetched == ()


def test_what_came_back_before_the_next_scan_is_a_new_entry(ledger):
    ledger.seen(HUB, [(b"a", 100)], NOW)
    ledger.record_evictions([evicted(b"a")], NOW + 1)
    again = ledger.seen(HUB, [(b"a", 100)], NOW + 2)
    assert again.records[b"a"] == Record(NOW + 2, True, 100)
    assert again.refetched_bytes == 100


@pytest.mark.parametrize("outcome", ["spared", "failed"])
def test_what_was_not_removed_stays_the_entry_that_it_was(ledger, outcome):
    ledger.seen(HUB, [(b"a", 100)], NOW)
    ledger.record_evictions([evicted(b"a", outcome=outcome)], NOW + 1)
    assert ledger.seen(HUB, [(b"a", 100)], NOW + 2).records[b"a"] == Record(NOW, False, 100)


def test_pruning_keeps_the_newest_rows_and_drops_what_is_too_old(ledger):
    ledger.record_evictions([evicted(b"%d" % i, time=NOW + i) for i in range(10)], NOW)
    ledger.prune(NOW + 20, keep=4, age=DAY)
    assert [row.entry for row in ledger.history()] == [b"9", b"8", b"7", b"6"]
    ledger.prune(NOW + 8 + DAY, keep=4, age=DAY)
    assert [row.entry for row in ledger.history()] == [b"9", b"8"]


def test_a_reader_sees_what_a_writer_in_another_connection_wrote(ledger, state_dir):
    ledger.seen(HUB, [(b"a", 1)], NOW)
    with open_ledger(state_dir, NOW, read_only=True) as reader:
        assert reader.records(HUB.key) == {b"a": Record(NOW, False, 1)}
        ledger.seen(HUB, [(b"a", 1), (b"b", 1)], NOW)
        assert set(reader.records(HUB.key)) == {b"a", b"b"}


def test_a_reader_creates_nothing_and_a_missing_ledger_remembers_nothing(state_dir):
    with open_ledger(state_dir, NOW, read_only=True) as reader:
        assert reader.history() == []
        assert reader.location_states() == {}
        assert reader.trouble is None
        with pytest.raises(RuntimeError, match="reading only"):
            reader.pause(None, NOW)
    assert not os.path.exists(state_dir)


def test_a_reader_leaves_no_file_beside_a_ledger_that_nobody_writes(state_dir):
    with open_ledger(state_dir, NOW) as ledger:
        ledger.seen(HUB, [(b"a", 1)], NOW)
    before = sorted(os.listdir(state_dir))
    with open_ledger(state_dir, NOW, read_only=True) as reader:
        assert set(reader.records(HUB.key)) == {b"a"}
    assert sorted(os.listdir(state_dir)) == before


def test_only_the_owner_may_look_at_the_ledger(ledger, state_dir):
    ledger.seen(HUB, [(b"a", 1)], NOW)
    assert os.stat(state_dir).st_mode & 0o777 == 0o700
    for name in os.listdir(state_dir):
        assert os.stat(os.path.join(state_dir, name)).st_mode & 0o777 == 0o600, name


def test_threads_may_use_one_ledger_at_once(ledger):
    def work(number):
        location = LocationSpec(f"l{number}", b"/l", Policy())
        for turn in range(20):
            ledger.seen(location, [(b"%d" % i, turn) for i in range(50)], NOW + turn)
            ledger.record_evictions([evicted(b"%d" % turn, location=location)], NOW)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(4))) == [None] * 4  # an exception would come out here
    assert len(ledger.history()) == 80


WRITER = """
import sys
from cachewarden.ledger import open_ledger
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import Policy
ledger = open_ledger(sys.argv[1].encode(), 1)
ours = LocationSpec(sys.argv[2], b"/", Policy())
shared = LocationSpec("shared", b"/", Policy())
for turn in range(100):
    ledger.seen(ours, [(b"%d" % i, turn) for i in range(20)], turn)
    ledger.update_location(shared, turn, **{sys.argv[3]: turn})
assert ledger.trouble is None and ledger.pending == 0, ledger.trouble
ledger.close()
"""


def test_two_processes_may_write_one_ledger_at_once_and_open_it_at_the_same_moment(state_dir):
    jobs = [("one", "bytes"), ("two", "files"), ("three", "entries")]
    children = [subprocess.Popen([sys.executable, "-c", WRITER, state_dir, *job]) for job in jobs]
    assert [child.wait() for child in children] == [0, 0, 0]
    with open_ledger(state_dir, NOW) as ledger:
        for name, _ in jobs:
            assert {r.bytes for r in ledger.records(f"{name}:/").values()} == {99}
        shared = ledger.location_state("shared:/")
        assert (shared.bytes, shared.files, shared.entries) == (99, 99, 99)
    assert not [name for name in os.listdir(state_dir) if b"damaged" in name]


def test_twenty_thousand_entries_are_taken_over_in_a_moment(ledger):
    """Well under a second; the bound is wide, because other tests may run at the same time."""
    entries = [(b"models--org--name-%d" % i, i) for i in range(20_000)]
    start = os.times().user + os.times().system
    ledger.seen(HUB, entries, NOW)
    assert os.times().user + os.times().system - start < 2
    assert len(ledger.records(HUB.key)) == 20_000
