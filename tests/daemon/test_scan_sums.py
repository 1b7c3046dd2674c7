"""Sums mean the same however they come about: one by one, many at once, merged."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewarden.kernel.lstat_many import CAPACITY, Look
from cachewarden.sums import Sums, all_plain

FIELDS = ("bytes", "files", "inodes", "newest_ns", "mtime_ns", "ctime_ns", "atime_ns")


def values(sums):
    return {field: getattr(sums, field) for field in FIELDS}


def one_by_one(found):
    sums = Sums()
    for each in found:
        sums.add(each)
    return values(sums)


SECOND = 10**9
TIMES = st.integers(-5, 5).map(lambda seconds: (1_700_000_000 + seconds) * SECOND)
FILES = st.lists(
    st.tuples(st.integers(0, 9000), TIMES, st.integers(0, 999_999_999), TIMES), min_size=1, max_size=12
)


@given(FILES)
def test_many_at_once_is_the_same_as_one_by_one(tmp_path_factory, files):
    root = tmp_path_factory.mktemp("many")
    for number, (size, mtime, fraction, atime) in enumerate(files):
        (root / str(number)).write_bytes(bytes(size))
        os.utime(root / str(number), ns=(atime + fraction, mtime + fraction))
    found = [os.lstat(root / str(number)) for number in range(len(files))]
    expected = one_by_one(found)
    at_once, summed = Sums(), Sums()
    assert all_plain(found)
    at_once.add_plain(found)
    assert values(at_once) == expected
    fd, look = os.open(root, os.O_RDONLY), Look()
    assert look.at(fd, [str(number).encode() for number in range(len(files))])
    os.close(fd)
    assert look.unusual() == []
    summed.add_summed(look.plain([]))
    assert values(summed) == expected


def test_a_look_sorts_out_what_is_not_a_plain_file(tmp_path):
    (tmp_path / "plain").write_bytes(b"x")
    (tmp_path / "linked").write_bytes(b"x")
    os.link(tmp_path / "linked", tmp_path / "again")
    (tmp_path / "link").symlink_to("plain")
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")
    fd, look = os.open(tmp_path, os.O_RDONLY), Look()
    assert look.at(fd, [b"fifo", b"plain", b"link", b"directory", b"again"])
    assert look.unusual() == [(0, False), (2, False), (3, True), (4, False)]
    assert look.plain(look.unusual()).files == 1
    assert look.at(fd, [b"directory"])
    assert look.plain(look.unusual()) is None
    os.close(fd)


def test_a_look_at_something_that_is_gone_says_so(tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    fd, look = os.open(tmp_path, os.O_RDONLY), Look()
    assert not look.at(fd, [b"f", b"gone"])
    assert look.at(fd, [b"f"] * CAPACITY)
    assert look.plain([]).files == CAPACITY
    os.close(fd)


def test_an_inode_counts_once_under_all_its_names(tmp_path):
    (tmp_path / "f").write_bytes(bytes(4096))
    os.link(tmp_path / "f", tmp_path / "g")
    sums = Sums()
    assert sums.add(os.lstat(tmp_path / "f"))
    assert not sums.add(os.lstat(tmp_path / "g"))
    assert (sums.files, sums.inodes, sums.bytes) == (1, 1, 4096)


def test_directories_lend_their_times_only_where_there_is_nothing_else(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_bytes(b"x")
    os.utime(tmp_path / "f", ns=(3 * SECOND, 4 * SECOND))
    os.utime(tmp_path / "d", ns=(8 * SECOND, 9 * SECOND))
    sums = Sums()
    sums.add(os.lstat(tmp_path / "d"))
    assert (sums.mtime_ns, sums.atime_ns) == (9 * SECOND, 0)
    sums.add(os.lstat(tmp_path / "f"))
    assert (sums.mtime_ns, sums.atime_ns) == (4 * SECOND, 3 * SECOND)


@pytest.mark.parametrize("change", ["write", "chmod", "rename", "new", "gone"])
def test_every_change_of_a_tree_shows_in_its_sums(tmp_path, change):
    (tmp_path / "f").write_bytes(bytes(4096))

    def sums():
        return one_by_one([os.lstat(tmp_path), *(os.lstat(tmp_path / name) for name in os.listdir(tmp_path))])

    before = sums()
    if change == "write":
        (tmp_path / "f").write_bytes(bytes(4095))
    elif change == "chmod":
        (tmp_path / "f").chmod(0o600)
    elif change == "rename":
        (tmp_path / "f").rename(tmp_path / "g")
    elif change == "new":
        (tmp_path / "g").touch()
    else:
        (tmp_path / "f").unlink()
    assert sums() != before


def test_merged_sums_are_the_sums_of_both(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(bytes(5000))
    found = [os.lstat(tmp_path / name) for name in ("a", "b", "c")] + [os.lstat(tmp_path)]
    one, other = Sums(), Sums()
    for number, each in enumerate(found):
        (one if number % 2 else other).add(each)
    one.merge(other)
    assert values(one) == one_by_one(found)
