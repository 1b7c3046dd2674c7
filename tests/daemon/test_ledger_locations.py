"""What the ledger remembers of locations: states, confirmations, pauses."""

import os

import pytest

from cachewarden.ledger import FOREVER, open_ledger
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import DAY, HOUR, SECOND, Policy
from cachewarden_policies.reasons import Outcome

NOW = 1_700_000_000 * SECOND
HUB = LocationSpec("hub", b"/data/hub", Policy())
ODD = LocationSpec("hub", b"/data/\xff\n", Policy())
OTHER = LocationSpec("other", b"/data/other", Policy())


@pytest.fixture
def ledger(tmp_path):
    with open_ledger(os.fsencode(tmp_path / "state"), NOW) as opened:
        yield opened


def test_a_location_keeps_what_one_change_does_not_name(ledger):
    ledger.seen(HUB, [], NOW)
    ledger.update_location(HUB, NOW, outcome=Outcome.SHORT, bytes=7, usage_complete=False)
    ledger.update_location(HUB, NOW, limit_bytes=5, bytes=8)
    state = ledger.location_state(HUB.key)
    assert (state.name, state.path, state.first_scan_ns) == ("hub", b"/data/hub", NOW)
    assert (state.outcome, state.bytes, state.limit_bytes) == (Outcome.SHORT, 8, 5)
    assert state.usage_complete is False
    assert state.inuse_complete is None
    assert ledger.location_states() == {HUB.key: state}
    assert ledger.location_state(ODD.key) is None


def test_a_confirmation_ends_at_its_deadline(ledger):
    ledger.confirm(HUB, NOW + HOUR, NOW)
    state = ledger.location_state(HUB.key)
    assert state.confirmed(NOW + HOUR - 1)
    assert not state.confirmed(NOW + HOUR)


def test_an_end_after_the_end_of_time_is_for_ever(ledger):
    ledger.pause("hub", NOW, 2**70)
    assert ledger.paused_until(HUB, NOW) == FOREVER
    assert ledger.trouble is None


def test_a_pause_of_one_name_holds_for_its_locations_of_today_and_of_tomorrow_and_for_no_other(ledger):
    ledger.seen(HUB, [], NOW)
    ledger.pause("hub", NOW)
    assert ledger.paused_until(HUB, NOW + 1000 * DAY) == FOREVER
    assert ledger.paused_until(ODD, NOW) == FOREVER, "no pass has looked at it yet"
    assert ledger.paused_until(OTHER, NOW) is None
    ledger.resume("hub", NOW)
    assert (ledger.paused_until(HUB, NOW), ledger.paused_until(ODD, NOW)) == (None, None)


def test_a_pause_of_everything_holds_for_locations_that_appear_later(ledger):
    ledger.pause(None, NOW, NOW + HOUR)
    assert ledger.paused_until(ODD, NOW + 1) == NOW + HOUR
    assert ledger.paused_until(ODD, NOW + HOUR) is None
    assert ledger.location_states() == {}, "no location was looked at yet"


def test_a_pause_of_a_name_is_no_location(ledger):
    ledger.pause("hub", NOW)
    assert ledger.location_states() == {}


def test_resuming_everything_takes_back_the_pauses_of_single_names_too(ledger):
    ledger.pause("hub", NOW)
    ledger.pause(None, NOW)
    ledger.resume(None, NOW)
    assert ledger.paused_until(HUB, NOW) is None


def test_resuming_one_name_leaves_the_pause_of_everything_and_of_other_names(ledger):
    ledger.pause("hub", NOW)
    ledger.pause("other", NOW, NOW + HOUR)
    ledger.resume("hub", NOW)
    assert ledger.paused_until(OTHER, NOW) == NOW + HOUR
    ledger.pause(None, NOW, NOW + DAY)
    ledger.resume("hub", NOW)
    assert ledger.paused_until(HUB, NOW) == NOW + DAY


def test_a_pause_that_was_written_for_a_single_location_holds_and_can_be_taken_back(ledger):
    ledger.update_location(HUB, NOW, paused_until_ns=NOW + HOUR)
    assert ledger.paused_until(HUB, NOW) == NOW + HOUR
    assert ledger.paused_until(ODD, NOW) is None
    ledger.resume("hub", NOW)
    assert ledger.paused_until(HUB, NOW) is None
