"""What is counted, for whom, and what would go: usage, hard links, sparse files, shared data."""

import os
import stat
import subprocess

from hypothesis import given
from hypothesis import strategies as st

from cachewarden.inventory import Claim, Foreign, Inventory, SharedClaim, Split
from cachewarden.scan import scan
from cachewarden_policies.globs import compile_globs
from cachewarden_policies.reasons import KeepReason

MIB = 1 << 20


def put(path, size=MIB):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size))
    return path


def claim(path, **more):
    return Claim(path, (path,), **more)


def measure(root, *claims, **more):
    """Scan with these claims, by default one for each child."""
    if not claims and "split" not in more:
        claims = tuple(claim(os.fsencode(name)) for name in sorted(os.listdir(root)))
    split = more.pop("split", None) or Split("plain", claims)
    fd = os.open(root, os.O_RDONLY)
    try:
        return scan(fd, split, **more)
    finally:
        os.close(fd)


def allocated(root):
    """The same sum, made in another way: whole paths, one set, no claims."""
    seen = {}
    for directory, _, names in os.walk(os.fsencode(root)):
        for name in names:
            found = os.lstat(os.path.join(directory, name))
            if stat.S_ISREG(found.st_mode):
                seen[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(seen.values()), len(seen)


def adds_up(inventory: Inventory):
    entries = sum(entry.measure.bytes for entry in inventory.entries)
    assert entries + inventory.foreign_bytes + inventory.trash_bytes == inventory.bytes
    for share in inventory.shares:
        assert list(share.owners) == sorted(share.owners)
    for position, entry in enumerate(inventory.entries):
        assert entry.disk_bytes <= entry.own_bytes <= entry.listed_bytes
        assert all(position in inventory.shares[index].owners for index in entry.shares)
    return True


def by_name(inventory):
    return {entry.name: entry for entry in inventory.entries}


def test_usage_counts_each_inode_once_and_a_link_is_no_gain(tmp_path):
    root = tmp_path / "root"
    put(root / "a" / "f")
    put(root / "c" / "g")
    (root / "b").mkdir()
    os.link(root / "a" / "f", root / "b" / "f")
    os.link(root / "a" / "f", tmp_path / "outside")
    inventory = measure(root)
    entries = by_name(inventory)
    assert inventory.bytes == 2 * MIB
    assert [entries[name].own_bytes for name in (b"a", b"b", b"c")] == [0, 0, MIB]
    assert [entries[name].disk_bytes for name in (b"a", b"b", b"c")] == [0, 0, MIB]
    assert [entries[name].measure.bytes for name in (b"a", b"b", b"c")] == [MIB, 0, MIB]
    assert [entries[name].listed_bytes for name in (b"a", b"b", b"c")] == [MIB, MIB, MIB]
    (share,) = inventory.shares
    assert (share.owners, share.bytes, share.files, share.outside) == ((0, 1), MIB, 1, True)
    assert adds_up(inventory)


def test_links_within_one_entry_are_its_own(tmp_path):
    put(tmp_path / "root" / "a" / "f")
    os.link(tmp_path / "root" / "a" / "f", tmp_path / "root" / "a" / "g")
    (entry,) = measure(tmp_path / "root").entries
    assert (entry.own_bytes, entry.disk_bytes, entry.own_files, entry.listed_files) == (MIB, MIB, 1, 1)
    assert (entry.measure.inodes, entry.disk_inodes) == (2, 2)


def test_a_link_outside_the_location_keeps_the_data_on_the_disk_only(tmp_path):
    put(tmp_path / "root" / "a" / "f")
    os.link(tmp_path / "root" / "a" / "f", tmp_path / "outside")
    (entry,) = measure(tmp_path / "root").entries
    assert (entry.own_bytes, entry.disk_bytes, entry.disk_inodes) == (MIB, 0, 1)


def test_data_that_something_foreign_links_to_does_not_go_with_the_entry(tmp_path):
    root = tmp_path / "root"
    put(root / "a" / "f")
    os.link(root / "a" / "f", root / "stranger")
    inventory = measure(root, claim(b"a"))
    (entry,) = inventory.entries
    assert (entry.measure.bytes, entry.own_bytes, entry.disk_bytes, inventory.shares) == (MIB, 0, 0, ())
    assert adds_up(inventory)


def test_a_link_elsewhere_that_comes_or_goes_leaves_the_identity_stamp_alone(tmp_path):
    put(tmp_path / "root" / "a" / "f")
    os.link(tmp_path / "root" / "a" / "f", tmp_path / "one")
    (before,) = measure(tmp_path / "root").entries
    os.link(tmp_path / "one", tmp_path / "two")
    (after,) = measure(tmp_path / "root").entries
    assert after.measure.newest_ns == before.measure.newest_ns
    assert after.measure.ctime_ns > before.measure.ctime_ns


def test_a_sparse_file_counts_what_is_allocated(tmp_path):
    path = put(tmp_path / "root" / "e" / "w.incomplete", 0)
    os.truncate(path, 10 << 30)
    with path.open("r+b") as file:
        file.seek(5 << 30)
        file.write(b"x")
        os.fsync(file.fileno())
    inventory = measure(tmp_path / "root")
    assert inventory.bytes == path.stat().st_blocks * 512
    assert 0 < inventory.bytes <= 1 << 16


def test_usage_agrees_with_du(tmp_path):
    root = tmp_path / "root"
    for number in range(40):
        put(root / f"e{number % 4}" / "sub" / f"f{number}", number * 1000)
    os.link(root / "e0" / "sub" / "f4", root / "e1" / "again")
    os.sync()
    names = subprocess.run(["find", root, "-type", "f", "-print0"], capture_output=True, check=True).stdout
    du = subprocess.run(
        ["du", "-c", "-B1", "--files0-from=-"], input=names, capture_output=True, check=True
    ).stdout
    assert measure(root).bytes == int(du.splitlines()[-1].split()[0])


def test_an_inner_claim_has_its_own_data_and_the_outer_one_lists_it_too(tmp_path):
    root = tmp_path / "root"
    put(root / "a" / "f")
    put(root / "a" / "deep" / "part")
    inventory = measure(root, claim(b"a"), claim(b"a/deep/part", partial=True))
    outer, inner = inventory.entries
    assert (outer.measure.bytes, inner.measure.bytes) == (MIB, MIB)
    assert (outer.own_bytes, outer.listed_bytes, outer.listed_files) == (MIB, 2 * MIB, 2)
    assert adds_up(inventory)


def test_a_guarded_claim_guards_the_one_around_it(tmp_path):
    put(tmp_path / "root" / "a" / "checkpoint" / "f")
    guarded = claim(b"a/checkpoint", keep=KeepReason.PROTECTED)
    outer, inner = measure(tmp_path / "root", claim(b"a"), guarded).entries
    assert (outer.measure.obstacle, inner.measure.obstacle) == (KeepReason.PROTECTED, None)


def test_shared_data_goes_with_the_last_of_its_owners(tmp_path):
    root = tmp_path / "root"
    for path in ("s/one/w", "s/two/w", "blobs/x", "blobs/x.refs", "blobs/nobody"):
        put(root / path)
    split = Split(
        "hub",
        (
            Claim(b"r@two", (b"s/two",), shared=(b"blobs/x",)),
            Claim(b"r@one", (b"s/one",), shared=(b"blobs/x",)),
        ),
        (SharedClaim(b"blobs/x", companions=(b"blobs/x.refs",)), SharedClaim(b"blobs/nobody")),
    )
    inventory = measure(root, split=split)
    one, two = inventory.entries
    assert (one.name, two.name) == (b"r@one", b"r@two")
    (share,) = inventory.shares
    assert (share.owners, share.bytes, share.files, share.claim) == ((0, 1), 2 * MIB, 2, split.shared[0])
    assert (one.measure.bytes, two.measure.bytes) == (3 * MIB, MIB)
    assert (one.own_bytes, one.listed_bytes) == (MIB, MIB)
    assert (inventory.foreign_bytes, one.shares, two.shares) == (MIB, (0,), (0,))
    assert adds_up(inventory)


def test_shared_data_that_was_used_is_a_use_of_its_owners(tmp_path):
    root = tmp_path / "root"
    put(root / "s" / "w")
    blob = put(root / "blobs" / "x")
    os.utime(blob, ns=(5 * 10**18, 4 * 10**18))
    split = Split("hub", (Claim(b"r", (b"s",), shared=(b"blobs/x",)),), (SharedClaim(b"blobs/x"),))
    (entry,) = measure(root, split=split).entries
    assert (entry.measure.atime_ns, entry.measure.mtime_ns) == (5 * 10**18, 4 * 10**18)
    assert entry.measure.newest_ns < 4 * 10**18


def test_trash_and_foreign_things_are_counted_apart(tmp_path):
    root = tmp_path / "root"
    for path in ("a/f", ".cachewarden-trash/p-1/f", "notes.txt", "token"):
        put(root / path)
    split = Split("plain", (claim(b"a"), claim(b".cachewarden-trash")), foreign=(Foreign(b"notes.txt"),))
    inventory = measure(root, split=split, trash_names=(b".cachewarden-trash",))
    assert [entry.name for entry in inventory.entries] == [b"a"]
    assert (inventory.trash_bytes, inventory.foreign_bytes, inventory.files) == (MIB, 2 * MIB, 4)
    assert inventory.foreign == ((Foreign(b"notes.txt"), MIB),)
    assert adds_up(inventory)


def test_what_is_excluded_is_not_counted_and_keeps_its_entry_whole(tmp_path):
    root = tmp_path / "root"
    for path in ("a/f", "a/golden-1/f", "b/f", "c/f"):
        put(root / path)
    inventory = measure(root, exclude=compile_globs(["**/golden-*", "c"]))
    entries = by_name(inventory)
    assert inventory.bytes == 2 * MIB
    assert set(entries) == {b"a", b"b"}
    assert (entries[b"a"].measure.obstacle, entries[b"b"].measure.obstacle) == (KeepReason.PROTECTED, None)


def test_a_claim_of_which_nothing_is_left_is_no_entry(tmp_path):
    put(tmp_path / "root" / "a")
    inventory = measure(tmp_path / "root", claim(b"a"), claim(b"gone"), claim(b"../etc"), claim(b"/a"))
    assert [entry.name for entry in inventory.entries] == [b"a"]


def test_an_entry_of_several_paths_is_known_by_its_first(tmp_path):
    put(tmp_path / "root" / "z" / "f")
    put(tmp_path / "root" / "a")
    (entry,) = measure(tmp_path / "root", Claim(b"both", (b"z", b"a"))).entries
    assert (entry.ino, entry.owner) == ((tmp_path / "root" / "z").stat().st_ino, os.getuid())
    assert entry.own_bytes == 2 * MIB


def test_the_whole_location_may_be_one_entry(tmp_path):
    put(tmp_path / "root" / "f")
    (entry,) = measure(tmp_path / "root", claim(b"")).entries
    assert (entry.ino, entry.own_bytes) == ((tmp_path / "root").stat().st_ino, MIB)


def test_reading_links_and_listing_directories_is_no_use(tmp_path):
    root = tmp_path / "root"
    os.utime(put(root / "a" / "f"), ns=(10**18, 10**18))
    (root / "a" / "link").symlink_to("f")
    os.utime(root / "a" / "link", ns=(3 * 10**18, 2 * 10**18), follow_symlinks=False)
    os.utime(root / "a", ns=(3 * 10**18, 10**18))
    (entry,) = measure(root).entries
    assert (entry.measure.atime_ns, entry.measure.mtime_ns) == (10**18, 2 * 10**18)


@st.composite
def trees(draw):
    """Directories by number of their parent, files by directory, links from a file to a directory."""
    parents = [draw(st.integers(-1, number - 1)) for number in range(draw(st.integers(1, 12)))]
    here = st.integers(-1, len(parents) - 1)
    files = draw(st.lists(st.tuples(here, st.integers(0, 9000)), max_size=20))
    links = draw(st.lists(st.tuples(st.integers(0, 19), here), max_size=12))
    claimed = draw(st.sets(st.integers(0, len(parents) - 1)))
    shared = draw(st.sets(st.integers(0, len(parents) - 1), max_size=2))
    return parents, files, links, claimed, shared - claimed


@given(trees())
def test_sums_always_add_up(tmp_path_factory, tree):
    parents, files, links, claimed, shared = tree
    base = tmp_path_factory.mktemp("tree")
    root = base / "root"
    root.mkdir()
    directories = {-1: root}
    for number, parent in enumerate(parents):
        directories[number] = directories[parent] / f"d{number}"
        directories[number].mkdir()
    made = [put(directories[at] / f"f{number}", size) for number, (at, size) in enumerate(files)]
    for number, (source, at) in enumerate(links):
        if source < len(made):
            os.link(made[source], (base if number % 3 == 0 else directories[at]) / f"l{number}")
    path = {number: os.fsencode(directories[number].relative_to(root)) for number in range(len(parents))}
    claims = tuple(claim(path[each], shared=tuple(path[one] for one in shared)) for each in claimed)
    inventory = measure(root, split=Split("x", claims, tuple(SharedClaim(path[each]) for each in shared)))
    assert adds_up(inventory)
    assert (inventory.bytes, inventory.files) == allocated(root)
    gone = sum(entry.own_bytes for entry in inventory.entries) + sum(each.bytes for each in inventory.shares)
    assert gone <= inventory.bytes
