"""Deleted files that are still open."""

import os

from cachewarden.holders.ghosts import deleted_open


def test_a_deleted_file_counts_while_it_is_open_once_however_often_it_is_open(tmp_path):
    path = tmp_path / "ghost"
    path.write_bytes(os.urandom(1 << 20))
    device = path.stat().st_dev
    before = deleted_open({device})[device]
    fds = [os.open(path, os.O_RDONLY) for _ in range(3)]
    try:
        assert deleted_open({device})[device] == before
        path.unlink()
        assert deleted_open({device})[device] == before + (1 << 20)
    finally:
        for fd in fds:
            os.close(fd)
    assert deleted_open({device})[device] == before


def test_a_living_file_with_a_misleading_name_is_no_ghost(tmp_path):
    path = tmp_path / "weights (deleted)"
    path.write_bytes(os.urandom(1 << 20))
    device = path.stat().st_dev
    before = deleted_open({device})[device]
    with path.open("rb"):
        assert deleted_open({device})[device] == before


def test_other_devices_are_not_asked(tmp_path):
    assert deleted_open(set()) == {}
