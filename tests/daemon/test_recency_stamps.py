"""Stamps that lie, on real files: unpacked archives, copies, 1970, links, and what `touch` does."""

import os
import subprocess
import tarfile

import pytest
from tests.daemon.passes import DAY, Field, policy

from cachewarden_policies.policy import HOUR, MINUTE
from cachewarden_policies.reasons import EvictReason

AGED = {"max_age": 30 * DAY, "max_idle": 30 * DAY}
OLD = 1_420_070_400  # 2015


@pytest.fixture
def field(tmp_path):
    """An empty location that was looked at before anything came."""
    field = Field(tmp_path)
    field.run(policy(**AGED))
    field.clock.advance(MINUTE)
    return field


def evicted(report):
    return sorted(os.fsdecode(each.entry) for each in report.evicted)


def unpack(field):
    source = field.base / "source"
    source.mkdir()
    (source / "f").write_bytes(os.urandom(4096))
    os.utime(source / "f", (OLD, OLD))
    with tarfile.open(field.base / "archive.tar", "w") as archive:
        archive.add(source, "came")
    subprocess.run(["tar", "-xf", field.base / "archive.tar", "-C", field.root], check=True)


def copy(field):
    source = field.base / "source"
    source.mkdir()
    (source / "f").write_bytes(os.urandom(4096))
    os.utime(source / "f", (OLD, OLD))
    os.utime(source, (OLD, OLD))
    subprocess.run(["cp", "-a", source, field.root / "came"], check=True)


def move(field):
    copy(field)
    os.rename(field.root / "came", field.base / "moved")
    field.run(policy(**AGED))
    field.clock.advance(MINUTE)
    os.rename(field.base / "moved", field.root / "came")


def date_to_1970(field):
    path = field.root / "came"
    path.mkdir()
    (path / "f").write_bytes(b"x" * 4096)
    subprocess.run(["touch", "-d", "1970-01-01 00:00:00 UTC", path / "f", path], check=True)


def before_1970(field):
    path = field.root / "came"
    path.mkdir()
    (path / "f").write_bytes(b"x" * 4096)
    subprocess.run(["touch", "-d", "1960-01-01 00:00:00 UTC", path / "f", path], check=True)


def date_to_2040(field):
    path = field.root / "came"
    path.mkdir()
    (path / "f").write_bytes(b"x" * 4096)
    subprocess.run(["touch", "-d", "2040-01-01", path / "f", path], check=True)


def link(field):
    copy(field)
    os.rename(field.root / "came", field.base / "outside")
    (field.root / "came").mkdir()
    os.link(field.base / "outside" / "f", field.root / "came" / "f")
    os.utime(field.root / "came", (OLD, OLD))


@pytest.mark.parametrize("ignore_ctime", [False, True])
@pytest.mark.parametrize(
    "come",
    [unpack, copy, move, date_to_1970, before_1970, date_to_2040, link],
    ids=lambda each: each.__name__,
)
def test_what_comes_with_wrong_stamps_is_young_and_ages_from_then_on(field, come, ignore_ctime):
    come(field)
    assert evicted(field.run(policy(**AGED), ignore_ctime=ignore_ctime)) == []
    field.restart()
    field.clock.advance(30 * DAY - HOUR)
    assert evicted(field.run(policy(**AGED), ignore_ctime=ignore_ctime)) == []
    field.clock.advance(2 * HOUR)
    report = field.run(policy(**AGED), ignore_ctime=ignore_ctime)
    assert evicted(report) == ["came"]
    assert {each.reason for each in report.evicted} <= {EvictReason.IDLE, EvictReason.AGED}


@pytest.mark.parametrize("come", [date_to_1970, date_to_2040], ids=lambda each: each.__name__)
def test_such_stamps_are_no_trouble_at_the_first_look_either(tmp_path, come):
    """Nobody knows then how long it was there: what is in doubt is young."""
    field = Field(tmp_path)
    come(field)
    assert evicted(field.run(policy(**AGED))) == []
    field.clock.advance(31 * DAY)
    assert evicted(field.run(policy(**AGED))) == ["came"]


def test_touching_an_entry_old_again_makes_it_no_older_than_it_is_known_to_be(field):
    field.entry("came", days=0)
    field.run(policy())
    field.clock.advance(10 * DAY)
    subprocess.run(["touch", "-d", "2015-01-01", field.root / "came" / "f", field.root / "came"], check=True)
    assert evicted(field.run(policy(**AGED))) == []
    field.clock.advance(21 * DAY)
    assert evicted(field.run(policy(**AGED))) == ["came"]


def test_a_new_file_in_an_old_entry_makes_it_young_though_the_file_is_dated_back(field):
    field.entry("came", days=0)
    field.run(policy())
    field.clock.advance(29 * DAY)
    new = field.root / "came" / "more"
    new.write_bytes(b"x")
    now = field.clock.wall_ns()
    os.utime(new, ns=(now - MINUTE, now - MINUTE))
    field.clock.advance(2 * DAY)
    assert evicted(field.run(policy(**AGED))) == []


def test_what_came_last_goes_last_whatever_it_is_dated(field):
    for number, come in enumerate((date_to_2040, date_to_1970)):
        come(field)
        os.rename(field.root / "came", field.root / f"e{number}")
        field.run(policy())
        field.clock.advance(DAY)
    field.entry("third", mib=0.004, days=0)
    report = field.run(policy(evict_all=True))
    assert [os.fsdecode(each.entry) for each in report.evicted] == ["e0", "e1", "third"]
