"""Looking into a location by descriptor: no link is followed, nothing special is opened."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from cachewarden.tree import Tree, open_beneath, split_path


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root/a/b").mkdir(parents=True)
    (tmp_path / "root/a/f").write_bytes(b"content")
    (tmp_path / "root/link").symlink_to("a")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(b"secret")
    (tmp_path / "root/out").symlink_to(tmp_path / "outside")
    return tmp_path / "root"


@pytest.fixture
def tree(root):
    fd = os.open(root, os.O_RDONLY)
    yield Tree(fd)
    os.close(fd)


def test_children_are_sorted_and_not_followed(tree):
    found = tree.children()
    assert [name for name, _ in found] == [b"a", b"link", b"out"]
    assert [stat.S_ISLNK(each.st_mode) for _, each in found] == [False, True, True]


def test_a_listing_knows_types_without_a_stat(tree, root):
    os.mkfifo(root / "fifo")
    assert tree.listing() == {
        b"a": stat.S_IFDIR,
        b"fifo": 0,
        b"link": stat.S_IFLNK,
        b"out": stat.S_IFLNK,
    }
    assert tree.listing(b"a") == {b"b": stat.S_IFDIR, b"f": stat.S_IFREG}


@pytest.mark.parametrize("path", [b"out/secret", b"link/f", b"missing", b"a/f/below", b"out", b"a"])
def test_what_lies_behind_a_link_or_is_no_file_reads_as_nothing(tree, path):
    assert tree.read(path) is None
    assert tree.unreadable == []


def test_nothing_is_listed_behind_a_link(tree):
    assert tree.children(b"out") == []
    assert tree.listing(b"link") == {}
    assert tree.stat(b"out/secret") is None
    assert not tree.is_dir(b"link")
    assert not tree.is_file(b"out/secret")


def test_files_and_links_are_read_as_they_are(tree, root):
    assert tree.read(b"a/f") == b"content"
    assert tree.read(b"a/f", limit=3) == b"con"
    assert tree.readlink(b"link") == b"a"
    assert tree.readlink(b"a/f") is None
    assert tree.readlink(b"a/none") is None
    assert tree.is_dir(b"a/b")
    assert tree.is_file(b"a/f")
    assert tree.stat(b"").st_ino == root.stat().st_ino
    assert tree.unreadable == []


def test_a_fifo_is_never_opened(tree, root):
    os.mkfifo(root / "fifo")
    writer = subprocess.Popen(["sh", "-c", 'echo x > "$0"', root / "fifo"])
    try:
        assert tree.read(b"fifo") is None
        with pytest.raises(subprocess.TimeoutExpired):  # opening it, even briefly, would let the writer go on
            writer.wait(0.3)
    finally:
        writer.kill()
        writer.wait()


def test_reading_leaves_the_access_time_alone(tree, root):
    os.utime(root / "a/f", ns=(10**18, 2 * 10**18))
    assert tree.read(b"a/f") == b"content"
    assert (root / "a/f").stat().st_atime_ns == 10**18


def test_names_are_bytes(tree, root):
    name = b"\xff\n" + b"x" * 253
    with open(os.path.join(os.fsencode(root), b"a", name), "wb") as file:
        file.write(b"1")
    assert [each for each, _ in tree.children(b"a")] == [b"b", b"f", name]
    assert tree.read(b"a/" + name) == b"1"


@pytest.mark.parametrize("path", [b"../outside", b"a/../a", b"/etc", b"a//b", b"a/", b"./a"])
def test_only_plain_relative_paths_are_opened(root, path):
    fd = os.open(root, os.O_RDONLY)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="not a plain relative path") as caught:
        open_beneath(fd, path)
    assert caught.value.errno == errno.EINVAL
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(fd)


def test_the_empty_path_is_the_root_itself(root):
    fd = os.open(root, os.O_RDONLY)
    again = open_beneath(fd, b"")
    assert os.fstat(again).st_ino == root.stat().st_ino
    os.close(again)
    os.close(fd)


@pytest.mark.parametrize(
    ("path", "parts"), [(b"a/b/c", (b"a/b", b"c")), (b"a", (b"", b"a")), (b"", (b"", b""))]
)
def test_a_path_splits_into_parent_and_name(path, parts):
    assert split_path(path) == parts


@pytest.mark.root
def test_what_is_there_and_cannot_be_read_is_told(tmp_path, needs_root):
    (tmp_path / "root/shut").mkdir(parents=True)
    (tmp_path / "root/shut").chmod(0)
    (tmp_path / "root/f").write_bytes(b"x")
    (tmp_path / "root/f").chmod(0)
    script = """
import os, sys
from cachewarden.tree import Tree
tree = Tree(int(sys.argv[1]))
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(tree.children(b"shut"), tree.read(b"f"), tree.is_dir(b"shut/x"), tree.unreadable)
"""
    fd = os.open(tmp_path / "root", os.O_RDONLY)
    found = subprocess.run(
        [sys.executable, "-c", script, str(fd)], pass_fds=[fd], capture_output=True, text=True, check=True
    )
    os.close(fd)
    assert found.stdout.strip() == "[] None False [(b'shut', 13), (b'f', 13), (b'shut/x', 13)]"
