"""Records that were read are read again only where they changed, and everybody's changes are seen."""

import os

import pytest

from cachewarden.ledger import Use, open_ledger
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import Policy
from cachewarden_policies.reasons import LastUseSource

NOW = 1_700_000_000 * 10**9
SPEC = LocationSpec("a", b"/a", Policy())
ENTRIES = [(b"one", 1), (b"two", 2)]


@pytest.fixture
def ledger(tmp_path):
    with open_ledger(os.fsencode(tmp_path), NOW) as found:
        found.seen(SPEC, ENTRIES, NOW)
        yield found


def use(ns):
    return Use(ns, LastUseSource.OPENS)


def test_while_nothing_changes_the_records_are_the_same_object(ledger):
    known = ledger.records(SPEC.key)
    assert ledger.seen(SPEC, ENTRIES, NOW + 1).records is known
    assert ledger.records(SPEC.key) is known


def test_own_changes_are_seen_and_nothing_else_is_read(ledger):
    before = ledger.records(SPEC.key)
    ledger.record_use(SPEC, {b"one": use(NOW + 5)}, NOW + 6)
    after = ledger.records(SPEC.key)
    assert after[b"one"].last_use_ns == NOW + 5
    assert after[b"two"] is before[b"two"]
    assert ledger.seen(SPEC, [(b"two", 3)], NOW + 7).records.keys() == {b"two"}
    assert {name: each.bytes for name, each in ledger.records(SPEC.key).items()} == {b"two": 3}


def test_changes_of_another_process_are_seen(ledger, tmp_path):
    ledger.records(SPEC.key)
    with open_ledger(os.fsencode(tmp_path), NOW) as other:
        other.record_use(SPEC, {b"two": use(NOW + 8)}, NOW + 9)
    assert ledger.records(SPEC.key)[b"two"].last_use_ns == NOW + 8


def test_what_waits_for_the_disk_is_seen_as_well(ledger, tmp_path):
    ledger.records(SPEC.key)
    for path in tmp_path.glob("ledger.sqlite*"):
        path.unlink()
    tmp_path.joinpath("ledger.sqlite").mkdir()  # nothing can be written or read any more
    tmp_path.joinpath("ledger.sqlite", "full").touch()
    ledger.record_use(SPEC, {b"one": use(NOW + 5)}, NOW + 6)
    ledger.seen(SPEC, ENTRIES, NOW + 7)
    ledger.record_use(SPEC, {b"one": use(NOW + 8)}, NOW + 9)
    assert ledger.records(SPEC.key)[b"one"].last_use_ns == NOW + 8


def test_a_ledger_that_was_taken_away_is_not_remembered(ledger, tmp_path):
    ledger.records(SPEC.key)
    for path in tmp_path.glob("ledger.sqlite*"):
        path.unlink()
    ledger.record_use(SPEC, {b"new": use(NOW)}, NOW + 1)  # notices, and starts a new file
    assert ledger.records(SPEC.key).keys() == {b"new"}
