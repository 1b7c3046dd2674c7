"""What a killed pass evicted is in the history once, whoever could still write it down."""

import os
import subprocess
from dataclasses import replace

import pytest
from tests.daemon.passes import Field, policy

from cachewarden.enforce.enforcer import Enforcer
from cachewarden.evict import Trash


@pytest.fixture
def field(tmp_path):
    made = Field(tmp_path)
    for name in ("a", "b", "c"):
        made.entry(name)
    yield made
    made.run(policy())


def killed(field, step):
    """A pass that would take everything, in a process that is killed at a step."""
    child = os.fork()
    if child == 0:
        try:
            field.open()  # a ledger's connection is not to be shared with a parent
            at = lambda name: os.kill(os.getpid(), 9) if name == step else None  # noqa: E731
            field.enforcer = Enforcer(replace(field.enforcer.means, at=at))
            field.run(policy(evict_all=True))
        finally:
            os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def booked(field):
    """Entries in the history."""
    return sorted(row.entry.decode() for row in field.ledger.history())


@pytest.mark.parametrize("step", ["opened", "leased", "moved", "verified"])
def test_what_is_put_back_is_not_booked(field, step):
    killed(field, step)
    field.restart()
    field.run(policy())
    assert field.names() == ["a", "b", "c"]
    assert booked(field) == []
    assert not any("booked" in notice for notice in field.heard.notices)


@pytest.mark.parametrize("step", ["committed", "released"])
def test_what_went_is_booked_once_and_said(field, step):
    killed(field, step)
    field.restart()
    for _ in range(3):
        field.run(policy())
    assert field.names() == []
    assert booked(field) == ["a", "b", "c"]
    said = [
        notice for notice in field.heard.notices if "was evicted by a pass that was interrupted" in notice
    ]
    assert len(said) == 3
    rows = field.ledger.history()
    assert {(row.outcome, row.bytes, row.freed_bytes) for row in rows} == {("removed", 1 << 20, 1 << 20)}


def test_what_was_made_anew_meanwhile_is_another_one(field):
    killed(field, "committed")
    field.entry("elsewhere")  # or the inode's number might be used again
    field.entry("b")
    field.restart()
    field.run(policy())
    assert field.names() == ["b", "elsewhere"]
    assert booked(field) == ["a", "b", "c"]


def test_what_is_not_decided_yet_is_booked_when_it_is(field):
    """Its place was taken, and somebody has a file of the old one open: it waits in the trash."""
    killed(field, "verified")
    root = os.open(field.root, os.O_RDONLY)
    with Trash(root, os.fsencode(field.root)) as trash:
        [reader] = [
            os.open(os.path.join(place.path, raw, b"f"), os.O_RDONLY)
            for place, name, raw in trash.pieces()
            if name.origin == b"a"
        ]
    os.close(root)
    (field.root / "a").mkdir()
    field.restart()
    field.run(policy())
    assert booked(field) == []
    os.close(reader)
    field.run(policy())
    assert booked(field) == ["a"]
    assert field.names() == ["a", "b", "c"]


def test_a_pass_that_ends_leaves_nothing_to_settle(field):
    report = field.run(policy(evict_all=True))
    assert len(report.evicted) == 3
    assert field.ledger.intents.of(field.spec(policy()).key) == {}
    field.run(policy())
    assert booked(field) == ["a", "b", "c"]


@pytest.mark.parametrize("step", [None, "committed"])
def test_history_knows_whose_each_was_if_its_pass_was_killed_too(field, needs_root, step):
    for uid, name in enumerate(("a", "b"), 50001):
        os.chown(field.root / name, uid, uid)
    if step is None:
        field.run(policy(evict_all=True))
    else:
        killed(field, step)
        field.restart()
        field.run(policy())
    assert {row.entry: row.owner for row in field.ledger.history()} == {b"a": 50001, b"b": 50002, b"c": 0}


def test_history_knows_whose_it_is_that_could_not_be_evicted(field, needs_root):
    os.chown(field.root / "b", 50001, 50001)
    subprocess.run(["chattr", "+i", field.root / "b"], check=True)
    try:
        report = field.run(policy(evict_all=True))
    finally:
        subprocess.run(["chattr", "-i", field.root / "b"], check=True)
    (failed,) = report.failed
    (row,) = [row for row in field.ledger.history() if row.outcome == "failed"]
    assert (row.entry, row.owner, failed.entry) == (b"b", 50001, b"b")
