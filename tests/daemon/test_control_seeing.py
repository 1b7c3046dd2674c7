"""What users see of a pass or plan: sums, and of entries only their own, wherever in it they are named."""

import json
from dataclasses import fields

import pytest

from cachewarden.report import EvictedEntry, FailedEntry, Holder, LocationReport, PassReport, SparedEntry
from cachewarden.service.control.seeing import own_report
from cachewarden_policies.reasons import EvictReason, KeepReason, LastUseSource, Outcome

ME, OTHER = 65534, 4711
OWNERS = {("cache", b"/srv/cache"): {b"mine": ME, b"secret": OTHER}}


def evicted(name):
    return EvictedEntry(name, 1, 1, EvictReason.OVER_SIZE, 0, LastUseSource.OPENS)


PARTS = {
    "evicted": evicted,
    "if_enforced": evicted,
    "spared": lambda name: SparedEntry(name, 1, KeepReason.IN_USE, (Holder("open", 7, "secret", "secret"),)),
    "failed": lambda name: FailedEntry(name, 5, b"/srv/cache/" + name),
}


def report(**more):
    located = LocationReport("cache", b"/srv/cache", "plain", Outcome.SHORT, **more)
    return PassReport((located,), in_use_checked="service")


@pytest.mark.parametrize("part", PARTS)
def test_of_entries_only_ones_own_are_named(part):
    both = report(**{part: (PARTS[part](b"mine"), PARTS[part](b"secret"))})
    (shown,) = own_report(both, OWNERS, ME).locations
    assert [each.entry for each in getattr(shown, part)] == [b"mine"]
    assert "secret" not in json.dumps(own_report(both, OWNERS, ME).to_json())


def test_every_part_of_a_report_that_names_entries_is_tried_here():
    named = {each.name for each in fields(LocationReport) if "Entry" in str(each.type)}
    assert named == set(PARTS)


def test_sentences_for_administrators_are_left_out():
    (shown,) = own_report(report(warnings=("secret is held by bob",)), OWNERS, ME).locations
    assert shown.warnings == ()
