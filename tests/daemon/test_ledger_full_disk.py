"""A ledger on a disk that is full: nothing is raised, nothing is lost, and it is told once."""

import errno
import os
import subprocess
from contextlib import contextmanager

import pytest

from cachewarden.ledger import EvictionRow, Record, open_ledger
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import SECOND, Policy
from cachewarden_policies.reasons import EvictReason

NOW = 1_700_000_000 * SECOND
HUB = LocationSpec("hub", b"/data/hub", Policy())


def evicted(name):
    return EvictionRow(NOW, HUB.key, HUB.name, HUB.path, name, 5, 5, EvictReason.IDLE, "removed")


@contextmanager
def small_disk(place):
    """A mounted ext4 of 8 MiB without a reserve for root."""
    image = place / "image"
    with open(image, "wb") as file:
        file.truncate(8 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    mounted = place / "mounted"
    mounted.mkdir()
    subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
    try:
        yield mounted
    finally:
        subprocess.run(["umount", "--lazy", mounted], check=True)


def fill(disk):
    """Leave no byte: first large pieces, then small ones."""
    for number, piece in enumerate((1 << 16, 1 << 12, 1)):
        with open(disk / f"fill{number}", "wb", buffering=0) as file:
            while _fits(file, b"x" * piece):
                pass


def _fits(file, piece):
    try:
        file.write(piece)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True


def make_room(disk):
    for path in disk.glob("fill*"):
        path.unlink()


def one_pass(ledger, turn):
    entries = [(b"entry-%04d" % i, turn) for i in range(turn * 100, 3000)]
    ledger.seen(HUB, entries, NOW + turn)
    ledger.record_evictions([evicted(b"entry-%04d" % (turn * 100))], NOW + turn)
    ledger.update_location(HUB, NOW + turn, bytes=turn)


@pytest.mark.root
def test_on_a_full_disk_nothing_is_raised_it_is_told_once_and_afterwards_all_is_there(tmp_path, needs_root):
    with small_disk(tmp_path) as disk:
        state_dir = os.fsencode(disk / "state")
        with open_ledger(state_dir, NOW) as ledger:
            ledger.take_notices()
            one_pass(ledger, 0)
            fill(disk)
            for turn in (1, 2, 3):
                one_pass(ledger, turn)
            (told,) = ledger.take_notices()
            assert "full" in told
            assert ledger.trouble is not None
            assert ledger.failed_writes >= 3
            expected = {b"entry-%04d" % i: Record(NOW, False, 3) for i in range(301, 3000)}
            assert ledger.records(HUB.key) == expected
            assert len(ledger.history()) == 4
            assert ledger.location_state(HUB.key).bytes == 3
            make_room(disk)
            ledger.update_location(HUB, NOW + 4, files=4)
            assert ledger.take_notices() == ["the ledger is written again"]
            assert (ledger.trouble, ledger.pending) == (None, 0)
        with open_ledger(state_dir, NOW) as ledger:
            assert ledger.take_notices() == []
            assert ledger.records(HUB.key) == expected
            assert len(ledger.history()) == 4


@pytest.mark.root
def test_started_fresh_on_a_full_disk_the_ledger_works_from_memory(tmp_path, needs_root):
    with small_disk(tmp_path) as disk:
        state_dir = os.fsencode(disk / "state")
        fill(disk)
        with open_ledger(state_dir, NOW) as ledger:
            one_pass(ledger, 1)
            one_pass(ledger, 2)
            assert len(ledger.take_notices()) == 1
            assert len(ledger.records(HUB.key)) == 2799
            assert len(ledger.history()) == 2
            make_room(disk)
            one_pass(ledger, 3)
            assert ledger.pending == 0
        with open_ledger(state_dir, NOW) as ledger:
            assert len(ledger.history()) == 3
            assert ledger.records(HUB.key)[b"entry-2999"] == Record(NOW + 1, False, 3)


@pytest.mark.root
def test_a_restart_on_a_full_disk_still_knows_what_was_known_before(tmp_path, needs_root):
    with small_disk(tmp_path) as disk:
        state_dir = os.fsencode(disk / "state")
        with open_ledger(state_dir, NOW) as ledger:
            one_pass(ledger, 0)
        fill(disk)
        with open_ledger(state_dir, NOW + 1) as ledger:
            one_pass(ledger, 1)
            assert ledger.trouble is not None
            assert ledger.records(HUB.key)[b"entry-2999"] == Record(NOW, False, 1)
        with open_ledger(state_dir, NOW + 1, read_only=True) as reader:
            assert reader.records(HUB.key)[b"entry-2999"] == Record(NOW, False, 0)
