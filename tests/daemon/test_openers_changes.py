"""Entries that come, are renamed or move keep whoever opened them."""

import os
import subprocess

import pytest
from tests.daemon.opening import KEY, OPEN_AND_CLOSE, Program, claims, feeding, fill

from cachewarden.clock import SetClock

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]


@pytest.fixture
def root(tmp_path):
    fill(tmp_path / "cache", "a/1.bin", "b/1.bin", "c/deep/1.bin")
    return tmp_path / "cache"


def test_who_makes_a_new_entry_is_its_opener(root):
    with feeding(root) as site:
        code = "import os, sys; os.makedirs(sys.argv[1]); open(sys.argv[1] + '/f', 'w').close()"
        with Program(code, root / "new/deep") as writer:
            site.feed.drain()
            site.index()
            assert site.held() == {"new"}
            assert site.pids("new") == {writer.pid}


def test_who_prepares_an_entry_elsewhere_and_moves_it_in_is_its_opener(root, tmp_path):
    with feeding(root) as site:
        code = (
            "import os, sys; os.mkdir(sys.argv[1]); open(sys.argv[1] + '/f', 'w').close()\n"
            "os.rename(sys.argv[1], sys.argv[2])"
        )
        with Program(code, tmp_path / "prepared", root / "new") as writer:
            site.index()
            assert site.held() == {"new"}
            assert site.pids("new") == {writer.pid}


def test_a_renamed_entry_keeps_its_openers(root):
    with feeding(root) as site, Program(OPEN_AND_CLOSE, root / "c/deep/1.bin") as reader:
        assert site.held() == {"c"}
        os.rename(root / "c", root / "renamed")
        site.index()
        assert site.held() == {"renamed"}
        assert site.pids("renamed") == {reader.pid}


def test_a_directory_that_becomes_shared_loses_nobody(tmp_path):
    root = tmp_path / "cache"
    fill(root, "blobs/one")
    with feeding(root) as site, Program(OPEN_AND_CLOSE, root / "blobs/one"):
        fill(root, "blobs/two")
        site.index(claims((b"one", (b"blobs/one",), ()), (b"two", (b"blobs/two",), ())))
        # It was opened before names were reported: it may have been either.
        assert site.held() == {"one", "two"}
        with Program(OPEN_AND_CLOSE, root / "blobs/two") as second:
            assert second.pid in site.pids("two")
            assert second.pid not in site.pids("one")


def test_unchanged_entries_are_not_looked_at_again_and_changed_ones_are(root):
    stamp = 1_600_000_000
    for path in [*root.rglob("*")]:
        os.utime(path, (stamp, stamp))
    with feeding(root, clock=SetClock(wall_ns=4_000_000_000 * 10**9)) as site:
        before = site.feed._located[KEY].look.grounds
        fill(root, "c/deep/er/2.bin")
        site.index()
        after = site.feed._located[KEY].look.grounds
        assert after[b"a"][1] is before[b"a"][1]
        assert after[b"c"][1] is not before[b"c"][1]
        with Program(OPEN_AND_CLOSE, root / "c/deep/er/2.bin"):
            assert site.held() == {"c"}


def test_very_deep_entries_are_watched_to_their_bottom(tmp_path):
    (tmp_path / "cache/a").mkdir(parents=True)
    code = (
        "import os, sys\nos.chdir(sys.argv[1])\nfor level in range(2000):\n"
        "    os.mkdir('d'); os.mkdir('e'); os.chdir('d')\n"
        "open('f', 'w').close()"
    )
    try:
        with Program(code, tmp_path / "cache/a"):
            pass
        with feeding(tmp_path / "cache") as site:
            ground = site.feed._located[KEY].look.grounds[b"a"][1]
            assert ground.complete
            assert len(ground.directories) == 4001
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "cache"], check=True)  # pytest's own cleaning recurses
