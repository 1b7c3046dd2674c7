"""A process that opened something in an entry is known, whichever way it opened it, until it ends."""

import os
import shutil
import subprocess
import sys
import time

import pytest
from tests.daemon.opening import OPEN_AND_CLOSE, Program, claims, feeding, fill, until

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]


@pytest.fixture
def root(tmp_path):
    fill(tmp_path / "cache", "a/1.bin", "a/2.bin", "a/deep/down/3.bin", "b/1.bin", "c/1.bin", "single.bin")
    return tmp_path / "cache"


@pytest.fixture
def site(root):
    with feeding(root) as made:
        yield made


def test_nobody_holds_what_nobody_opened(site):
    assert site.held() == set()
    assert site.feed.recent(site.key) == {}


def test_whoever_opened_and_closed_holds_until_it_ends(site, root):
    with Program(OPEN_AND_CLOSE, root / "a/1.bin") as reader:
        assert site.held() == {"a"}
        assert site.pids("a") == {reader.pid}
        assert not os.path.exists(f"/proc/{reader.pid}/fd/3")  # it has nothing open any more
        reader.end()
        assert site.held() == set()


WAYS = {
    "path": "open(root + '/a/deep/down/3.bin').close()",
    "directory descriptor": """
directory = os.open(root + '/a', os.O_RDONLY)
os.close(os.open('1.bin', os.O_RDONLY, dir_fd=directory))
os.close(directory)""",
    "working directory": "os.chdir(root + '/a/deep'); open('down/3.bin').close(); os.chdir('/')",
    "mapping": """
import mmap
file = os.open(root + '/a/1.bin', os.O_RDONLY)
mapped = mmap.mmap(file, 1, prot=mmap.PROT_READ)
os.close(file); mapped.close()""",
    "creation": "open(root + '/a/new.bin', 'w').close()",
    "symbolic link": "os.symlink(root + '/a/1.bin', root + '/../link'); open(root + '/../link').close()",
    "hard link": "os.link(root + '/a/1.bin', root + '/a/other'); open(root + '/a/other').close()",
    "thread": """
import threading
thread = threading.Thread(target=lambda: open(root + '/a/1.bin').close())
thread.start(); thread.join()""",
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_open_is_seen(site, root, way):
    with Program("import os, sys\nroot = sys.argv[1]\n" + WAYS[way], root) as reader:
        assert site.held() == {"a"}
        assert site.pids("a") == {reader.pid}


def test_running_a_program_that_lies_in_an_entry_is_seen(site, root):
    shutil.copy("/bin/sleep", root / "a/program")
    site.index()
    site.held()
    with subprocess.Popen([root / "a/program", "600"]) as running:
        try:
            assert until(lambda: running.pid in site.pids("a"))
        finally:
            running.kill()


@pytest.mark.parametrize(
    "wrap",
    [
        ("unshare", "--mount"),
        ("unshare", "--pid", "--fork", "--mount-proc"),
        ("unshare", "--user", "--map-root-user"),
        ("unshare", "--mount", "--pid", "--fork", "--user", "--map-root-user", "--mount-proc"),
    ],
    ids=["mount", "pid", "user", "all of them"],
)
def test_other_namespaces_hide_nobody(site, root, wrap):
    with Program(OPEN_AND_CLOSE, root / "b/1.bin", wrap=wrap):
        assert site.held() == {"b"}
        assert None not in site.pids("b")


def test_an_open_through_another_mount_of_the_filesystem_is_seen(site, root, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    code = (
        "import os, subprocess, sys\n"
        "subprocess.run(['mount', '--bind', sys.argv[1], sys.argv[2]], check=True)\n"
        "os.close(os.open(sys.argv[2] + '/a/1.bin', os.O_RDONLY))"
    )
    with Program(code, root, tmp_path / "elsewhere", wrap=("unshare", "--mount")):
        assert site.held() == {"a"}


def test_only_the_entries_that_were_opened_are_held(site, root):
    with Program(OPEN_AND_CLOSE, root / "a/1.bin", root / "c/1.bin"):
        assert site.held() == {"a", "c"}


def test_an_entry_that_is_one_file_is_told_from_its_neighbours(site, root):
    with Program(OPEN_AND_CLOSE, root / "single.bin"):
        assert site.held() == {"single.bin"}


def test_listing_and_statting_is_no_use(site, root):
    code = """
import os, sys
for here, _, names in os.walk(sys.argv[1]):
    for name in names:
        os.stat(os.path.join(here, name))
"""
    with Program(code, root):
        assert site.held() == set()
        assert site.feed.recent(site.key) == {}


def test_we_ourselves_are_no_users(site, root):
    (root / "a/1.bin").read_bytes()
    assert site.held() == set()
    assert site.feed.recent(site.key) == {}


def test_an_open_by_a_process_that_is_gone_is_a_use_and_holds_nobody(site, root):
    before = time.time_ns()
    subprocess.run(["cat", root / "a/1.bin"], stdout=subprocess.DEVNULL, check=True)
    assert site.held() == set()
    found = site.feed.recent(site.key)
    assert set(found) == {b"a"}
    assert before <= found[b"a"].ns <= time.time_ns()


def test_shared_files_hold_each_entry_that_uses_them(tmp_path):
    root = tmp_path / "hub"
    fill(root, "blobs/one", "blobs/both", "blobs/two", "snapshots/r1/x", "snapshots/r2/x")
    split = claims(
        (b"m@r1", (b"snapshots/r1", b"blobs/one"), (b"blobs/both",)),
        (b"m@r2", (b"snapshots/r2", b"blobs/two"), (b"blobs/both",)),
        shared=(b"blobs/both",),
    )
    with feeding(root) as site:
        site.index(split)
        with Program(OPEN_AND_CLOSE, root / "blobs/one"):
            assert site.held() == {"m@r1"}
        with Program(OPEN_AND_CLOSE, root / "blobs/both"):
            assert site.held() == {"m@r1", "m@r2"}
        with Program(OPEN_AND_CLOSE, root / "snapshots/r2/x"):
            assert site.held() == {"m@r2"}
        assert site.held() == set()


def test_an_entry_inside_another_is_told_from_it(tmp_path):
    root = tmp_path / "cache"
    fill(root, "outer/f", "outer/inner/f", "outer/inner/deep/f", "outer/file")
    split = claims((b"o", (b"outer",), ()), (b"i", (b"outer/inner",), ()), (b"f", (b"outer/file",), ()))
    with feeding(root) as site:
        site.index(split)
        for path, entry in (("outer/f", "o"), ("outer/inner/deep/f", "i"), ("outer/file", "f")):
            with Program(OPEN_AND_CLOSE, root / path):
                assert site.held() == {entry}


def test_the_newest_open_names_who_it_was(site, root):
    with Program(OPEN_AND_CLOSE, root / "a/1.bin") as reader:
        assert site.held() == {"a"}
        assert site.feed.recent(site.key)[b"a"].pid == reader.pid
        (holder,) = site.feed.openers(site.key, b"a")
        assert (holder.kind, holder.pid) == ("opener", reader.pid)
        assert holder.name == os.path.basename(sys.executable)[:15]
