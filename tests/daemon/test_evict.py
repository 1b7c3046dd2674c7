"""An eviction where nobody is in the way, and what it counts."""

import os
import stat

import pytest
from tests.daemon.evicting import Cache, Opened

from cachewarden.report import Failed, Gone, Removed, Spared
from cachewarden_policies.reasons import KeepReason


@pytest.fixture
def cache(tmp_path):
    cache = Cache(tmp_path / "cache")
    yield cache
    cache.sweep()


def nothing_left(cache):
    with cache.trash() as trash:
        return list(trash.pieces()) == []


def test_a_directory_goes_whole_and_its_neighbour_stays(cache):
    cache.put("e/sub/a", 10_000)
    cache.put("e/b", 4096)
    cache.put("n/c")
    os.symlink("nowhere", cache.path("e/link"))
    assert cache.evict(cache.victim("e")) == Removed(12_288 + 4096, 5)
    assert not cache.has("e")
    assert cache.has("n/c")
    assert nothing_left(cache)


def test_a_single_file_is_an_entry(cache):
    cache.put("f", 5000)
    assert cache.evict(cache.victim("f")) == Removed(8192, 1)
    assert not cache.has("f")


def test_a_link_goes_and_what_it_leads_to_stays(cache, tmp_path):
    (tmp_path / "treasure").mkdir()
    (tmp_path / "treasure" / "gold").write_bytes(b"au")
    cache.put("l/f")
    os.symlink(tmp_path / "treasure", cache.path("l/link"))
    os.symlink(tmp_path / "treasure", cache.path("bare"))
    assert isinstance(cache.evict(cache.victim("l")), Removed)
    assert isinstance(cache.evict(cache.victim("bare")), Removed)
    assert not cache.has("l")
    assert not cache.has("bare")
    assert (tmp_path / "treasure" / "gold").read_bytes() == b"au"


def test_what_is_gone_already_is_success(cache):
    cache.put("e/f")
    victim = cache.victim("e")
    os.rename(cache.path("e"), cache.path("other"))
    assert cache.evict(victim) == Gone()
    assert cache.has("other/f")


@pytest.mark.parametrize(
    "name",
    [
        b"x" * 255,
        b"a\nERROR forged",
        b"\xff\xfe",
        b'q"uo\\te',
        b" lead",
        b"-rf",
        b"..%2f",
        b"%25",
        b"\xcc\x81e",
    ],
)
def test_names_of_every_kind_go(cache, name):
    cache.put(name + b"/" + name, 4096)
    assert cache.evict(cache.victim(name)) == Removed(4096, 2)
    assert not cache.has(name)
    assert nothing_left(cache)


def test_an_origin_that_is_longer_than_a_name_may_be_goes(cache):
    deep = b"/".join([b"d" * 200] * 5)
    cache.put(deep + b"/e/f")
    assert isinstance(cache.evict(cache.victim(deep + b"/e")), Removed)
    assert cache.has(deep)
    assert nothing_left(cache)
    with cache.trash() as trash:
        names = [name for place in trash.places if place.fd is not None for name in os.listdir(place.fd)]
        assert not any(trash.location.decode() in name for name in names)


@pytest.mark.parametrize("depth", [10, 3000])
def test_a_tree_of_any_depth_goes(abyss, depth):
    """3,000 levels: no path reaches the bottom, and a recursive walk would not come back."""
    cache = Cache(abyss / "cache")
    os.mkdir(cache.path("e"))
    levels = [os.open(cache.path("e"), os.O_RDONLY)]
    for _ in range(depth):
        os.mkdir("d", dir_fd=levels[-1])
        levels.append(os.open("d", os.O_RDONLY, dir_fd=levels[-1]))
    for level in levels:
        os.close(level)
    for _ in range(20):  # a service that another test started looks up which directories were made here
        outcome = cache.evict(cache.deep_victim("e"))
        if not isinstance(outcome, Spared):
            break
    assert outcome == Removed(0, depth + 1)
    assert not cache.has("e")


def test_a_hard_link_outside_frees_nothing(cache, tmp_path):
    os.link(cache.put("e/f", 8192), tmp_path / "outside")
    assert cache.evict(cache.victim("e")) == Removed(0, 1)  # the directory
    assert (tmp_path / "outside").stat().st_nlink == 1


def test_two_names_in_one_entry_free_their_data_once(cache):
    os.link(cache.put("e/f", 8192), cache.path("e/g"))
    assert cache.evict(cache.victim("e")) == Removed(8192, 2)


@pytest.mark.parametrize("at_once", [True, False])
def test_the_last_of_two_entries_that_share_data_frees_it(cache, at_once):
    cache.put("b/own")
    os.link(cache.put("a/f", 8192), cache.path("b/f"))
    victims = [cache.victim("a"), cache.victim("b")]
    if at_once:
        assert cache.evict(*victims) == [Removed(0, 1), Removed(8192 + 4096, 3)]
    else:
        assert cache.evict(victims[0]) == Removed(0, 1)
        # Measured after the other link went, as a new pass would.
        assert cache.evict(cache.victim("b")) == Removed(8192 + 4096, 3)


def test_an_entry_inside_another_may_go_first_and_does_not_count_as_a_change(cache):
    cache.put("repo/blobs/partial", 8192)
    cache.put("repo/blobs/whole")  # the newest of all: the sums of the outer entry have its stamp
    outer = cache.victim("repo", listed_bytes=4096, listed_files=1, apart=(b"repo/blobs/partial",))
    assert cache.evict(outer) == Spared(KeepReason.SHARED_DATA)
    assert cache.evict(cache.victim("repo/blobs/partial"), outer) == [Removed(8192, 1), Removed(4096, 3)]
    assert not cache.has("repo")


def test_several_paths_go_together_with_the_directories_they_leave_empty(cache):
    paths = ["r/snapshots/c", "r/refs/main", "r/blobs/a"]
    for path in ("r/snapshots/c/f", "r/refs/main", "r/blobs/a", "r/blobs/b"):
        cache.put(path)
    husks = (b"r/snapshots", b"r/refs", b"r/blobs", b"r")
    assert isinstance(cache.evict(cache.victim(*paths, husks=husks)), Removed)
    assert sorted(cache.tree()) == [b"r", b"r/blobs", b"r/blobs/b"]


def test_shared_data_goes_with_its_last_owner_and_not_before(cache):
    for path in ("r/s/f", "store/p", "store/p.refs", "q/f"):
        cache.put(path)
    assert isinstance(cache.evict(cache.victim("q", shared_in_place=(b"store/p",))), Removed)
    assert cache.has("store/p")
    outcome = cache.evict(cache.victim("r", shared_out=(b"store/p.refs", b"store/p")))
    assert isinstance(outcome, Removed)
    assert outcome.freed_bytes == 3 * 4096
    assert os.listdir(cache.path("store")) == []


def test_shared_data_that_somebody_took_up_since_it_was_measured_keeps_its_owner(cache):
    for path in ("r/f", "store/p", "store/p.refs"):
        cache.put(path)
    victim = cache.victim("r", shared_out=(b"store/p.refs", b"store/p"), measured_ns=1)
    assert cache.evict(victim) == Spared(KeepReason.CHANGED)
    assert cache.has("store/p.refs")
    assert cache.has("r/f")


@pytest.mark.parametrize("path", ["", ".", "..", "../neighbour", "e/../e", "e/"])
@pytest.mark.parametrize("room", [8192, 16])
def test_a_path_that_no_inventory_contains_is_not_followed(cache, tmp_path, path, room):
    (tmp_path / "neighbour").mkdir()
    (tmp_path / "neighbour" / "f").write_bytes(b"x")
    for number in range(40):
        cache.put(f"e/{number}")
    outcome = cache.evict(cache.victim(path), room=room)
    assert outcome == Spared(KeepReason.UNKNOWN)
    assert cache.has("e/7")
    assert (tmp_path / "neighbour" / "f").exists()


def test_where_leases_are_not_to_be_trusted_nothing_goes(cache):
    cache.put("e/f")
    assert cache.evict(cache.victim("e"), lease_trusted=False) == Spared(KeepReason.UNKNOWN)
    assert cache.has("e/f")


def test_a_special_file_inside_keeps_the_entry_and_is_not_opened(cache):
    cache.put("e/f")
    os.mkfifo(cache.path("e/pipe"))
    assert cache.evict(cache.victim("e")) == Spared(KeepReason.UNKNOWN)
    assert stat.S_ISFIFO(os.stat(cache.path("e/pipe")).st_mode)


def test_what_an_nfs_client_renamed_because_it_is_open_keeps_the_entry(cache):
    cache.put("e/f")
    cache.put("e/.nfs0000000000b681f500000fb3")
    assert cache.evict(cache.victim("e")).reason is KeepReason.IN_USE
    assert cache.has("e/f")
    os.unlink(cache.path("e/.nfs0000000000b681f500000fb3"))
    assert isinstance(cache.evict(cache.victim("e")), Removed)


@pytest.mark.parametrize("drains", [0, 1, 2])
def test_a_live_opener_keeps_the_entry_whenever_he_becomes_known(cache, drains):
    cache.put("e/f")
    cache.put("n/f")
    before = cache.tree()
    outcomes = cache.evict(cache.victim("e"), cache.victim("n"), openers=Opened(b"e", later=drains))
    assert outcomes[0] == Spared(KeepReason.LIVE_OPENER, rolled_back=drains == 2)
    assert isinstance(outcomes[1], Removed)
    assert cache.tree("e") == {path[2:]: seen for path, seen in before.items() if path.startswith(b"e/")}


def test_an_entry_with_more_files_than_descriptors_goes_in_rounds(cache):
    for number in range(300):
        cache.put(f"e/{number % 7}/{number}")
    cache.put("n/f")
    outcomes = cache.evict(cache.victim("e"), cache.victim("n"), room=100)
    assert outcomes == [Removed(300 * 4096, 308), Removed(4096, 2)]
    assert cache.tree() == {}


def test_a_change_of_permissions_or_owner_is_never_made(cache):
    cache.put("e/f")
    os.chmod(cache.path("e/f"), 0o400)
    os.chmod(cache.path("e"), 0o555)
    keep = cache.put("n/f")
    os.chmod(keep, 0o440)
    outcome = cache.evict(cache.victim("e"))
    assert isinstance(outcome, Removed if os.geteuid() == 0 else Failed)
    assert stat.S_IMODE(os.stat(keep).st_mode) == 0o440
