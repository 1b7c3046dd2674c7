"""kill -9 of the real command at random moments, and a start afterwards; `killing` has the long form.

The short form is 50 kills. Its seed is the day, so that each day looks elsewhere; a failure says it.
"""

import time

import pytest
from tests.system import killing

KILLS = {
    "plain": 11,
    "hub": 13,
    "no trash, plain": 4,
    "no trash, hub": 6,
    "full ext4": 4,
    "full xfs": 4,
    "full btrfs": 4,
    "full tmpfs": 4,
}
SEED = time.time_ns() // (86_400 * 10**9)


def test_every_ground_has_its_share():
    assert set(KILLS) == set(killing.GROUNDS)
    assert sum(KILLS.values()) == 50


@pytest.mark.root
@pytest.mark.parametrize("ground", killing.GROUNDS)
def test_killed_at_random_moments_entries_are_whole_or_gone_booked_once_and_said(
    needs_root, tmp_path, ground
):
    found = killing.campaign(ground, str(tmp_path), KILLS[ground], SEED, size=100)
    assert found["absent after the kill"] > 0, f"seed {SEED}: no kill met an eviction"


def test_what_a_ledger_lost_in_a_kill_is_still_right_on_the_disk(tmp_path):
    """Another process has the ledger locked all the time: nothing can be noted, and nothing is torn."""
    root = tmp_path / "cache"
    root.mkdir()
    rounds = killing.Killing(str(tmp_path), str(root), killing.plain, 60, SEED)
    rounds.books = False
    rounds.wardens[1]("once")
    rounds.round(lambda: killing.locked_ledger(rounds.wardens[1].state_dir))
