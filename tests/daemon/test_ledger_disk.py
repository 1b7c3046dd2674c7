"""A ledger that is damaged, missing, newer, older, or locked."""

import os
import random
import shutil
import sqlite3
from contextlib import closing

import pytest

from cachewarden.errors import LedgerTooNewError
from cachewarden.ledger import EvictionRow, Opener, Record, Use, open_ledger
from cachewarden.ledger.schema import STEPS
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import SECOND, Policy
from cachewarden_policies.reasons import EvictReason, LastUseSource

NOW = 1_700_000_000 * SECOND
HUB = LocationSpec("hub", b"/data/hub", Policy())
NEWER = range(60, 64)  # where an SQLite header keeps the version of the schema


@pytest.fixture
def state_dir(tmp_path):
    return os.fsencode(tmp_path / "state")


@pytest.fixture
def filled(state_dir):
    """The file of a closed ledger with 300 entries and 300 evictions."""
    with open_ledger(state_dir, NOW) as ledger:
        ledger.seen(HUB, [(b"entry-%d" % i, i) for i in range(300)], NOW)
        ledger.record_evictions([evicted(b"gone-%d" % i) for i in range(300)], NOW)
    return os.path.join(state_dir, b"ledger.sqlite")


def evicted(name):
    return EvictionRow(NOW, HUB.key, HUB.name, HUB.path, name, 5, 5, EvictReason.IDLE, "removed")


def content(path):
    with open(path, "rb") as file:
        return file.read()


def put(path, data):
    with open(path, "wb") as file:
        file.write(data)


def names(state_dir, part):
    return [name for name in os.listdir(state_dir) if part in name]


@pytest.mark.parametrize("junk", [b"not a database", b"x" * 8192, b"SQLite format 3\0"])
def test_what_is_no_database_is_set_aside_and_said(filled, state_dir, junk):
    put(filled, junk)
    with open_ledger(state_dir, NOW) as ledger:
        (notice,) = ledger.take_notices()
        assert "damaged" in notice
        assert "ledger.sqlite.damaged-20231114T221320Z" in notice
        assert ledger.take_notices() == [], "it is said once"
        assert ledger.seen(HUB, [(b"a", 1)], NOW).records == {b"a": Record(NOW, False, 1)}
    assert content(os.path.join(state_dir, b"ledger.sqlite.damaged-20231114T221320Z")) == junk


def test_a_second_damaged_ledger_does_not_replace_the_first(filled, state_dir):
    for _ in range(2):
        put(filled, b"junk")
        open_ledger(state_dir, NOW).close()
    assert len(names(state_dir, b"damaged")) == 2


def test_the_database_of_another_program_is_set_aside_unchanged(filled, state_dir):
    os.unlink(filled)
    with closing(sqlite3.connect(filled)) as other:
        other.execute("CREATE TABLE theirs (a)")
        other.execute("PRAGMA user_version = 1")
        other.commit()
    before = content(filled)
    with open_ledger(state_dir, NOW) as ledger:
        assert "another program" in ledger.take_notices()[0]
    (kept,) = names(state_dir, b"damaged")
    assert content(os.path.join(state_dir, kept)) == before


def test_a_directory_in_the_place_of_the_ledger_is_set_aside(state_dir):
    os.makedirs(os.path.join(state_dir, b"ledger.sqlite"))
    with open_ledger(state_dir, NOW) as ledger:
        ledger.seen(HUB, [(b"a", 1)], NOW)
        assert ledger.trouble is None


@pytest.mark.parametrize("kind", ["one byte", "a block", "cut off"])
def test_damage_anywhere_never_stops_us_and_leaves_a_ledger_that_works(filled, state_dir, kind):
    """Either the damage was noticed and set aside, or what is read has the types that it must have."""
    whole, noticed, seed = content(filled), 0, random.Random(kind)
    for _ in range(50):
        for name in os.listdir(state_dir):
            os.unlink(os.path.join(state_dir, name))
        damaged, place = bytearray(whole), seed.randrange(len(whole))
        if kind == "one byte":
            damaged[place] ^= 1 << seed.randrange(8)
        elif kind == "a block":
            damaged[place : place + 512] = seed.randbytes(len(damaged[place : place + 512]))
        else:
            del damaged[place:]
        put(filled, damaged)
        if NEWER.start <= place < NEWER.stop and kind == "one byte":
            continue  # a version number that became a slightly higher one is refused, rightly
        with open_ledger(state_dir, NOW) as ledger:
            ledger.records(HUB.key)
            ledger.history()
            ledger.location_states()
            ledger.seen(HUB, [(b"new", 1)], NOW)
            ledger.record_evictions([evicted(b"new")], NOW)
            noticed += bool(ledger.take_notices())
        with open_ledger(state_dir, NOW) as ledger:
            assert evicted(b"new") in ledger.history()
    assert noticed > (5 if kind == "one byte" else 25)


def test_damage_that_shows_while_the_ledger_is_in_use_is_set_aside_by_the_next_write(filled, state_dir):
    with open_ledger(state_dir, NOW) as ledger:
        with open(filled, "r+b") as file:
            file.write(b"\0" * os.path.getsize(filled))
        ledger.seen(HUB, [(b"a", 1)], NOW)
        ledger.seen(HUB, [(b"a", 1), (b"b", 1)], NOW + 1)
        assert {b"a", b"b"} <= set(ledger.records(HUB.key))
        assert any("set aside" in notice for notice in ledger.take_notices())
        assert ledger.pending == 0


def test_damage_that_only_a_read_meets_is_set_aside_too(filled, state_dir):
    """The pages of one table are gone; the file was sound when it was opened."""
    with open_ledger(state_dir, NOW) as ledger:
        ledger.take_notices()
        with closing(sqlite3.connect(filled)) as other:
            (page,) = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'evictions'").fetchone()
        with open(filled, "r+b") as file:
            file.seek((page - 1) * 4096)
            file.write(b"\xff" * 4096)
        assert ledger.history() == []
        assert ledger.trouble is not None
        ledger.record_evictions([evicted(b"new")], NOW)
        assert ledger.history() == [evicted(b"new")]
        assert any("set aside" in notice for notice in ledger.take_notices())


def test_one_letter_of_a_column_name_is_damage(filled, state_dir):
    whole = content(filled)
    assert b"last_use_source" in whole
    put(filled, whole.replace(b"last_use_source", b"lost_use_source"))
    with open_ledger(state_dir, NOW) as ledger:
        assert "its tables" in ledger.take_notices()[0]


def test_an_index_that_an_administrator_added_is_no_damage(filled, state_dir):
    with closing(sqlite3.connect(filled)) as other:
        other.execute("CREATE INDEX mine ON evictions (bytes)")
    with open_ledger(state_dir, NOW) as ledger:
        assert ledger.take_notices() == []
        assert len(ledger.history()) == 300


def test_a_ledger_removed_while_in_use_is_started_anew_and_that_is_said(filled, state_dir):
    with open_ledger(state_dir, NOW) as ledger:
        os.unlink(filled)
        ledger.seen(HUB, [(b"a", 1)], NOW)
        assert any("there was no ledger" in notice for notice in ledger.take_notices())
    with open_ledger(state_dir, NOW) as ledger:
        assert set(ledger.records(HUB.key)) == {b"a"}


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_ledger_is_refused_and_not_a_byte_of_it_changes(filled, state_dir, read_only):
    with closing(sqlite3.connect(filled)) as newer:
        newer.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    before = {name: content(os.path.join(state_dir, name)) for name in os.listdir(state_dir)}
    with pytest.raises(LedgerTooNewError, match="install the newer") as refused:
        open_ledger(state_dir, NOW, read_only=read_only)
    assert refused.value.exit_status == 2
    assert {name: content(os.path.join(state_dir, name)) for name in os.listdir(state_dir)} == before


def test_a_damaged_ledger_is_not_touched_by_a_reader(filled, state_dir):
    put(filled, b"junk" * 100)
    with open_ledger(state_dir, NOW, read_only=True) as reader:
        assert reader.records(HUB.key) == {}
        assert "not an SQLite database" in reader.trouble
    assert content(filled) == b"junk" * 100


NEXT_STEP = ("ALTER TABLE entries ADD COLUMN note TEXT", "UPDATE entries SET bytes = bytes + 1")


def test_an_older_ledger_is_copied_before_it_is_migrated(filled, state_dir):
    with open_ledger(state_dir, NOW, steps=(*STEPS, NEXT_STEP)) as ledger:
        assert ledger.records(HUB.key)[b"entry-7"] == Record(NOW, False, 8)
        old = len(STEPS)
        assert ledger.take_notices() == [f"the ledger was migrated from version {old} to {old + 1}"]
    (backup,) = names(state_dir, b"backup")
    assert backup == b"ledger.sqlite.v%d-20231114T221320Z.backup" % old
    shutil.copy(os.path.join(state_dir, backup), filled)
    with open_ledger(state_dir, NOW) as ledger:
        assert ledger.records(HUB.key)[b"entry-7"] == Record(NOW, False, 7), "the old version reads it"
        assert len(ledger.history()) == 300


@pytest.mark.parametrize("version", range(1, len(STEPS)))
def test_a_ledger_of_each_older_version_keeps_its_uses_and_takes_new_ones(state_dir, version):
    """As its steps made it, and as a version of then filled it."""
    open_ledger(state_dir, NOW, steps=STEPS[:version]).close()
    with closing(sqlite3.connect(os.path.join(state_dir, b"ledger.sqlite"))) as older:
        columns = "location, name, first_seen_ns, appeared, bytes, last_use_ns, last_use_source"
        row = (HUB.key, b"a", NOW - 9, 1, 7, NOW - 5, "opens")
        older.execute(f"INSERT INTO entries ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        older.commit()
    old = Record(NOW - 9, True, 7, NOW - 5, LastUseSource.OPENS)
    with open_ledger(state_dir, NOW, read_only=True) as reader:  # a full disk cannot be migrated on
        assert reader.record(HUB.key, b"a") == old
    use = Use(NOW, LastUseSource.OPENS, Opener(17, b"cat", 1000), "fanotify")
    with open_ledger(state_dir, NOW) as ledger:
        assert ledger.record(HUB.key, b"a") == old
        ledger.record_use(HUB, {b"a": use}, NOW)
    with open_ledger(state_dir, NOW) as ledger:
        assert ledger.record(HUB.key, b"a") == Record(NOW - 9, True, 7, *use)


def test_a_migration_that_fails_half_way_changes_nothing(filled, state_dir):
    broken = (*NEXT_STEP, "INSERT INTO entries SELECT * FROM nowhere")
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        open_ledger(state_dir, NOW, steps=(*STEPS, broken))
    with open_ledger(state_dir, NOW) as ledger:
        assert ledger.records(HUB.key)[b"entry-7"] == Record(NOW, False, 7)


def test_a_locked_ledger_delays_rows_and_loses_none(filled, state_dir):
    with open_ledger(state_dir, NOW) as ledger, closing(sqlite3.connect(filled)) as other:
        other.execute("BEGIN IMMEDIATE")
        ledger.update_location(HUB, NOW, bytes=7)
        assert "locked" in ledger.trouble
        assert (ledger.pending, ledger.failed_writes) == (1, 1)
        assert ledger.location_state(HUB.key).bytes == 7, "reads see what waits"
        assert len(ledger.records(HUB.key)) == 300, "reads go on"
        other.rollback()
        ledger.update_location(HUB, NOW, files=8)
        assert (ledger.trouble, ledger.pending) == (None, 0)
    with open_ledger(state_dir, NOW) as ledger:
        state = ledger.location_state(HUB.key)
        assert (state.bytes, state.files) == (7, 8)
