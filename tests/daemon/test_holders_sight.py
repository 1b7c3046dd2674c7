"""What processes plainly use below a directory."""

import os

from tests.daemon.passes import holding

from cachewarden.holders.sight import in_sight


def seen(base):
    """Path and kind of each sighting below `base`."""
    return {(each.path, each.holder.kind) for each in in_sight(os.fsencode(base))}


def test_open_mapped_and_stood_in_are_seen_by_relative_path(tmp_path):
    for name in ("open", "mapped", "cwd"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_bytes(b"x" * 4096)
    code = """
f = open(sys.argv[1] + '/open/f')
g = open(sys.argv[1] + '/mapped/f', 'rb')
m = mmap.mmap(g.fileno(), 0, prot=mmap.PROT_READ)
g.close()
os.chdir(sys.argv[1] + '/cwd')
"""
    with holding(code, str(tmp_path)) as process:
        expected = {(b"open/f", "open"), (b"mapped/f", "mapped"), (b"cwd", "cwd")}
        assert expected <= seen(tmp_path)
        found = next(each for each in in_sight(os.fsencode(tmp_path)) if each.path == b"open/f")
        status = os.stat(tmp_path / "open" / "f")
        assert (found.inode, found.holder.pid) == ((status.st_dev, status.st_ino), process.pid)
    assert seen(tmp_path) == set()


def test_a_neighbour_with_a_longer_name_is_not_below(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache2").mkdir()
    (tmp_path / "cache2" / "f").write_bytes(b"x")
    with holding("f = open(sys.argv[1])", str(tmp_path / "cache2" / "f")):
        assert seen(tmp_path / "cache") == set()
