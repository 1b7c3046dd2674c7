"""What the structure feed says of a location: each directory that changed, and no pass for nothing."""

import os
import subprocess

import pytest
from tests.daemon.opening import until
from tests.daemon.structuring import KEY, Site, by_others, fill, seeing

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]


@pytest.fixture
def disk(tmp_path):
    """A filesystem on which nobody else is at work."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


@pytest.fixture
def site(disk):
    """A location with three entries, one of them deep."""
    fill(disk / "cache", "a/f", "b/deep/er/f", "single")
    fill(disk / "elsewhere", "tree/one/f", "tree/two/f")
    with seeing(disk / "cache", disk / "state") as site:
        yield site


def test_at_first_nothing_is_known_and_then_nothing_changed(site):
    assert site.first is None
    assert site.take() == set()


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("open('new', 'w')", {""}),
        ("os.mkdir('new')", {""}),
        ("os.symlink('x', 'a/l')", {"a"}),
        ("os.link('a/f', 'b/deep/f')", {"b/deep"}),
        ("os.unlink('a/f')", {"a"}),
        ("open('a/f', 'a').write('more')", {"a"}),
        ("os.close(os.open('a/f', os.O_WRONLY))", {"a"}),
        ("os.rename('a/f', 'b/g')", {"a", "b"}),
        ("os.rename('b/deep', 'a/deep')", {"a", "b", "a/deep", "a/deep/er"}),
        ("os.rename('b', 'c')", {"", "c", "c/deep", "c/deep/er"}),
        ("shutil.rmtree('b')", {""}),
        ("os.makedirs('b/new/newer'); open('b/new/newer/f', 'w')", {"b", "b/new", "b/new/newer"}),
        (
            "f = os.open('a', os.O_TMPFILE | os.O_RDWR); os.link(f'/proc/self/fd/{f}', 'a/t', src_dir_fd=f)",
            {"a"},
        ),
        ("os.rename('../elsewhere/tree', 'tree')", {"", "tree", "tree/one", "tree/two"}),
        (
            "os.rename('../elsewhere/tree', 'b/deep/tree')",
            {"b/deep"} | {f"b/deep/tree{x}" for x in ("", "/one", "/two")},
        ),
        ("os.rename('b', '../b'); shutil.rmtree('../b')", {""}),
        (
            "os.rename('b', '../b'); open('../b/deep/x', 'w'); os.rename('../b', 'b')",
            {"", "b", "b/deep", "b/deep/er"},
        ),
        (
            "os.rename('a', '../x'); os.rename('b', 'a'); os.rename('../x', 'b')",
            {"", "a", "a/deep", "a/deep/er", "b"},
        ),
    ],
)
def test_each_directory_that_changed_is_told_by_its_path_and_a_pass_is_asked_for(site, code, changed):
    by_others(f"os.chdir(args[0])\n{code}", os.fsdecode(site.root))
    assert until(lambda: site.asks)
    assert site.take() == changed


def test_what_is_asked_for_is_told_once_and_lost_answers_bring_everything(site):
    fill(os.fsdecode(site.root), "a/new")
    assert site.take() == {"a"}
    assert site.take() == set()
    site.feed.lost(KEY)
    assert site.take() is None
    assert site.take() == set()


def test_reading_is_no_change(site):
    by_others(
        "for top, _, names in os.walk(args[0]):\n    [open(os.path.join(top, n)).read() for n in names]",
        os.fsdecode(site.root),
    )
    assert site.take() == set()


def test_our_own_changes_are_told_but_ask_for_no_pass(site):
    root = os.fsdecode(site.root)
    os.rename(f"{root}/a", f"{root}/.cachewarden-trash")
    os.unlink(f"{root}/.cachewarden-trash/f")
    os.rmdir(f"{root}/.cachewarden-trash")
    open(f"{root}/b/f", "w").close()
    assert not until(lambda: site.asks, seconds=0.5)
    assert site.take() == {"", "b"}


def test_times_and_rights_are_looked_at_in_the_next_pass_but_ask_for_none(site):
    by_others(
        "os.utime(args[0], (1, 1)); os.chmod(args[1], 0o700)",
        site.root.decode() + "/a/f",
        site.root.decode() + "/b",
    )
    assert not until(lambda: site.asks, seconds=0.5)
    assert site.take() == {"a", "b"}


def test_what_happens_outside_every_location_is_no_change(site, disk):
    fill(disk / "elsewhere", *(f"{number}/f" for number in range(30)))
    by_others("shutil.rmtree(args[0])", disk / "elsewhere")
    assert not until(lambda: site.asks, seconds=0.5)
    assert site.take() == set()


def test_locations_on_one_filesystem_are_told_apart(site, disk):
    other = Site(disk / "elsewhere/tree", site.feed, site.asked, "cache:/other")
    assert other.take() is None
    assert site.take() == set()
    fill(disk / "elsewhere/tree", "one/new")
    assert (site.take(), other.take()) == (set(), {"one"})
    by_others("os.rename(args[0], args[1])", disk / "cache/a", disk / "elsewhere/tree/a")
    assert (site.take(), other.take()) == ({""}, {"", "a"})
    assert len(site.feed.descriptors()) == 1
    site.feed.unwatch("cache:/other")
    fill(disk / "elsewhere/tree", "one/newer")
    assert site.take() == set()
    assert not site.feed.sees("cache:/other")


def test_where_a_directory_lies_is_looked_up_again_when_something_was_moved(site, disk):
    fill(disk, "elsewhere/tree/one/new", "cache/a/new")
    assert site.take() == {"a"}
    by_others("os.rename(args[0], args[1])", disk / "elsewhere/tree", disk / "cache/tree")
    assert site.take() == {"", "tree", "tree/one", "tree/two"}
    fill(disk, "cache/tree/one/newer")
    assert site.take() == {"tree/one"}
    by_others("os.rename(args[0], args[1])", disk / "cache/tree", disk / "elsewhere/tree")
    assert site.take() == {""}
    site.asked.clear()
    fill(disk, "elsewhere/tree/one/newest")
    assert not until(lambda: site.asks, seconds=0.5)
    assert site.take() == set()


def test_a_directory_that_was_outside_and_is_a_location_now_is_looked_up_again(site, disk):
    fill(disk, "elsewhere/tree/new")
    assert site.take() == set()
    other = Site(disk / "elsewhere/tree", site.feed, site.asked, "cache:/other")
    other.take()
    fill(disk, "elsewhere/tree/newer")
    assert other.take() == {""}


def test_another_directory_than_the_one_that_is_watched_is_not_known(site, disk):
    fd = os.open(disk / "elsewhere", os.O_RDONLY)
    assert site.feed.take(KEY, fd) is None
    os.close(fd)
    assert site.take() is None  # what was measured last was something else
    assert site.take() == set()


def test_one_directory_under_two_names_changes_under_both(site):
    other = Site(site.root, site.feed, site.asked, "cache:/again")
    other.take()
    fill(os.fsdecode(site.root), "a/new")
    assert (site.take(), other.take()) == ({"a"}, {"a"})


def test_a_change_that_another_location_met_first_asks_for_a_pass(site, disk):
    other = Site(disk / "elsewhere/tree", site.feed, site.asked, "cache:/other")
    other.take()
    site.asked.clear()
    fill(disk / "elsewhere/tree", "one/new")
    site.take()  # before the thread reads: whoever asks, reads for all
    assert until(lambda: other.asks)
    assert other.take() == {"one"}


@pytest.mark.parametrize("up", ["cache", "above/cache"])
def test_a_root_that_is_renamed_and_back_is_heard_all_the_while(disk, up):
    fill(disk / up, "a/f", "b/f")
    top = disk / up.split("/")[0]
    with seeing(disk / up, disk / "state") as site:
        by_others("os.rename(args[0], args[0] + '-away')", top)
        fill(f"{top}-away{up[len(up.split('/')[0]) :]}", "a/meanwhile")
        until(lambda: False, seconds=0.3)  # let the thread read, and not find the location where it was
        by_others("os.rename(args[0] + '-away', args[0])", top)
        found = site.take()
        assert found is None or "a" in found
        fill(disk / up, "b/later")
        assert site.take() == {"b"}


def test_another_directory_in_the_place_of_the_root_is_another_location(site, disk):
    by_others("os.rename(args[0], args[0] + '-away'); os.mkdir(args[0])", disk / "cache")
    assert site.take() is None
    fill(disk / "cache", "a/f")
    assert site.take() == {"", "a"}
    fill(disk / "cache-away", "a/f")
    assert site.take() == set()


def test_a_root_that_is_removed_and_made_again_is_not_taken_for_the_same(site, disk):
    by_others("shutil.rmtree(args[0]); os.mkdir(args[0])", disk / "cache")
    assert site.take() is None


def test_a_location_seen_through_a_bind_mount_changes_whoever_writes_by_whatever_mount(disk):
    fill(disk / "data/cache", "a/f")
    (disk / "bound").mkdir()
    subprocess.run(["mount", "--bind", disk / "data", disk / "bound"], check=True)
    with seeing(disk / "bound/cache", disk / "state") as site:
        fill(disk / "data/cache", "a/direct")
        assert site.take() == {"a"}
        fill(disk / "bound/cache", "a/bound", "new/f")
        assert site.take() == {"", "a", "new"}
        by_others("os.rename(args[0], args[1])", disk / "data/cache/a", disk / "data/cache/new/a")
        assert site.take() == {"", "new", "new/a"}


def test_locations_are_told_apart_that_are_reached_by_mounts_of_different_parts(disk):
    fill(disk / "data", "one/cache/a/f", "two/cache/a/f", "three/a/f")
    for part in ("one", "two"):
        (disk / "mnt" / part).mkdir(parents=True)
        subprocess.run(["mount", "--bind", disk / "data" / part, disk / "mnt" / part], check=True)
    with seeing(disk / "mnt/one/cache", disk / "state") as site:
        other = Site(disk / "mnt/two/cache", site.feed, site.asked, "cache:/other")
        assert other.take() is None
        fill(disk / "data", "one/cache/a/g", "two/cache/a/g", "three/a/g", "one/else/g")
        assert until(lambda: site.asks)
        assert until(lambda: other.asks)
        assert (site.take(), other.take()) == ({"a"}, {"a"})
        fill(disk / "data", "three/a/h", "one/else/h")
        assert (site.take(), other.take()) == (set(), set())
        assert not site.asks


def test_a_location_that_was_renamed_away_leaves_the_others_known(site, disk):
    other = Site(disk / "elsewhere/tree", site.feed, site.asked, "cache:/other")
    other.take()
    by_others("os.rename(args[0], args[0] + '-away')", disk / "cache")
    fill(disk / "elsewhere/tree", "one/new")
    fill(disk / "cache-away", "a/new")
    assert until(lambda: other.asks)
    assert other.take() == {"one"}
    assert until(lambda: site.asks)
    by_others("os.rename(args[0] + '-away', args[0])", disk / "cache")
    assert site.take() is None


def test_a_path_longer_than_the_kernel_tells_makes_everything_dirty_and_nothing_fail(site):
    by_others(
        "os.chdir(args[0])\nfor _ in range(40):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)",
        os.fsdecode(site.root),
    )
    assert site.take() is None
    fill(os.fsdecode(site.root), "a/new")
    assert site.take() == {"a"}


def test_more_changed_directories_than_it_pays_to_look_up_are_everything(site):
    by_others(
        "os.chdir(args[0])\nfor n in range(10_050):\n    os.mkdir(str(n)); open(f'{n}/f', 'w')",
        os.fsdecode(site.root),
    )
    assert site.take() is None
    by_others(
        "os.rename(args[0] + '/cache', args[0] + '/elsewhere/cache')", os.path.dirname(os.fsdecode(site.root))
    )
