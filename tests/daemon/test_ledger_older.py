"""Ledgers of each older version, as its code wrote them, become one of this version and lose nothing.

The files in tests/data/ledgers hold the same: three entries of which one was used, two evictions, one that
had begun, a state and a pause. Whoever adds a step adds the file that the version before it wrote.
"""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cachewarden.errors import LedgerTooNewError
from cachewarden.ledger import EvictionRow, Intent, Opener, Record, Use, open_ledger
from cachewarden.ledger.schema import STEPS
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import DAY, SECOND, Policy
from cachewarden_policies.reasons import EvictReason, LastUseSource, Outcome

FILES = Path(__file__).parents[1] / "data" / "ledgers"
NEWEST = len(STEPS)
NOW = 1_700_000_000 * SECOND
HUB = LocationSpec("hub", b"/data/hub", Policy())
OPENED = {
    1: Record(NOW, False, 2, NOW + 5, LastUseSource.OPENS),
    2: Record(NOW, False, 2, *Use(NOW + 5, LastUseSource.OPENS, Opener(17, b"cat", 1000), "fanotify")),
}


def went(name, outcome="removed", source=LastUseSource.ATIME, **more):
    reason = EvictReason.IDLE if source else EvictReason.OVER_SIZE
    use = NOW - DAY if source else None
    return EvictionRow(
        NOW, HUB.key, HUB.name, HUB.path, name, 5, 4, str(reason), outcome, use, source, **more
    )


@pytest.fixture(params=range(1, NEWEST))
def version(request):
    return request.param


@pytest.fixture
def state_dir(tmp_path, version):
    shutil.copy(FILES / f"version-{version}.sqlite", tmp_path / "ledger.sqlite")
    return os.fsencode(tmp_path)


def holds_what_it_held(ledger, version):
    never_used = {b"kept": Record(NOW, False, 1), b"\xff": Record(NOW, False, 5)}
    assert ledger.records(HUB.key) == never_used | {b"used": OPENED[version]}
    assert ledger.history() == [went(b"\xff", "failed", None), went(b"gone")]
    begun = went(b"begun", source=LastUseSource.STAMPS)
    assert list(ledger.intents.of(HUB.key).values()) == [Intent(begun, b"begun/f", 2**63 + 7)]
    state = ledger.location_state(HUB.key)
    assert (state.outcome, state.bytes) == (Outcome.SHORT, 7)
    assert ledger.paused_until(HUB, NOW + DAY) is not None


def test_the_file_is_of_the_version_that_its_name_says(version, state_dir):
    assert (FILES / f"version-{version}.sqlite").read_bytes()[60:64] == version.to_bytes(4, "big")
    assert not (FILES / f"version-{NEWEST}.sqlite").exists()


def test_it_is_migrated_with_all_it_held_and_the_file_of_before_is_kept(version, state_dir):
    with open_ledger(state_dir, NOW) as ledger:
        assert ledger.take_notices() == [f"the ledger was migrated from version {version} to {NEWEST}"]
        holds_what_it_held(ledger, version)
    with open_ledger(state_dir, NOW) as ledger:
        assert ledger.take_notices() == []
        holds_what_it_held(ledger, version)
    (backup,) = [name for name in os.listdir(state_dir) if b"backup" in name]
    shutil.copy(os.path.join(state_dir, backup), os.path.join(state_dir, b"ledger.sqlite"))
    with open_ledger(state_dir, NOW, steps=STEPS[:version]) as ledger:
        holds_what_it_held(ledger, version)


def test_nobody_is_the_owner_of_what_went_before_and_owners_are_known_from_here_on(state_dir):
    mine = went(b"mine", owner=1000)
    with open_ledger(state_dir, NOW) as ledger:
        assert [row.owner for row in ledger.history()] == [None, None]
        ledger.record_evictions([mine], NOW)
        ledger.intents.begin([Intent(went(b"next", owner=0), b"next", 9)], NOW)
    with open_ledger(state_dir, NOW) as ledger:
        assert ledger.history()[0] == mine
        assert sorted(str(each.row.owner) for each in ledger.intents.of(HUB.key).values()) == ["0", "None"]


def test_a_reader_that_may_not_migrate_it_reads_it_as_it_is(version, state_dir):
    with open_ledger(state_dir, NOW, read_only=True) as reader:
        holds_what_it_held(reader, version)
    assert sorted(os.listdir(state_dir)) == [b"ledger.sqlite"]


def test_a_full_disk_that_takes_no_copy_leaves_it_as_it_was_and_what_went_is_told(version, state_dir):
    """A directory of that name is in the way of the copy, as a full disk would be."""
    backup = os.path.join(state_dir, b"ledger.sqlite.v%d-20231114T221320Z.backup" % version)
    os.mkdir(backup)
    with open_ledger(state_dir, NOW) as ledger:
        assert ledger.trouble is not None
        holds_what_it_held(ledger, version)
        ledger.record_evictions([went(b"mine", owner=1000)], NOW)
        assert ledger.history()[0] == went(b"mine", owner=1000)
        assert ledger.pending == 2
        os.rmdir(backup)
        ledger.record_evictions([went(b"more", owner=1000)], NOW)
        assert (ledger.trouble, ledger.pending) == (None, 0)
    with open_ledger(state_dir, NOW) as ledger:
        assert {row.entry: row.owner for row in ledger.history()} == {
            b"more": 1000,
            b"mine": 1000,
            b"\xff": None,
            b"gone": None,
        }


@pytest.mark.parametrize("read_only", [False, True])
def test_the_code_of_before_refuses_the_migrated_one(version, state_dir, read_only):
    open_ledger(state_dir, NOW).close()
    with pytest.raises(LedgerTooNewError, match="install the newer"):
        open_ledger(state_dir, NOW, read_only=read_only, steps=STEPS[:version])
    with closing(sqlite3.connect(os.path.join(state_dir, b"ledger.sqlite"))) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (NEWEST,)
