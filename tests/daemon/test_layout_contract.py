"""What holds for every layout, over trees of every kind."""

import contextlib
import importlib
import os
import shutil
import stat
import time
from pathlib import Path
from types import ModuleType

import pytest
from tests.daemon.layout_trees import (
    ODD,
    Build,
    claims,
    divide,
    everything,
    opened,
    put,
    repository,
)
from tests.daemon.passes import Field, policy

from cachewarden.errors import LayoutError
from cachewarden.inventory import Claim, Split
from cachewarden.layouts import LAYOUTS, layout_names
from cachewarden.layouts.base import LayoutTree
from cachewarden.scan import scan
from cachewarden.tree import Tree
from cachewarden_policies.policy import HOUR
from cachewarden_policies.reasons import Cost

FALLBACKS = {"accelerate", "plain"}


def trees() -> dict[str, tuple[str, Build]]:
    """Every `build…` of every fixture file, by a name of its own, with the name of its layout."""
    found: dict[str, tuple[str, Build]] = {"empty": ("plain", bytes)}
    for layout in LAYOUTS:
        module = fixture(layout.name)
        for name, build in vars(module).items():
            if name.startswith("build") and build.__module__ == module.__name__:
                found[layout.name + name.removeprefix("build")] = (layout.name, build)
    return found


def fixture(layout: str) -> ModuleType:
    """The fixture file of a layout: `build…(root)`, `usable(root, claim)`, `STAYS`."""
    return importlib.import_module(f"tests.daemon.layout_fixtures.{layout}")


TREES = trees()


@pytest.fixture(params=TREES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def root(name: str, tmp_path: Path) -> bytes:
    path = os.fsencode(tmp_path) + b"/location"
    os.mkdir(path)
    TREES[name][1](path)
    return path


def covers(paths: tuple[bytes, ...], path: bytes) -> bool:
    return any(path == each or path.startswith(each + b"/") for each in paths)


def remove(root: bytes, found: Split, claim: Claim) -> None:
    """What eviction does in the end: the claim's paths, what it used last, directories left empty."""
    last = [
        each
        for each in found.shared
        if each.path in claim.shared
        and not each.kept
        and not any(each.path in c.shared for c in found.claims if c is not claim)
    ]
    for path in (*claim.paths, *(path for each in last for path in (*each.companions, each.path))):
        full = root + b"/" + path
        shutil.rmtree(full) if os.path.isdir(full) and not os.path.islink(full) else os.unlink(full)
    for husk in claim.husks:
        if os.path.isdir(root + b"/" + husk) and not os.listdir(root + b"/" + husk):
            os.rmdir(root + b"/" + husk)


def test_a_tree_is_recognised_by_its_shape_alone(root, name):
    """The directory's own name says nothing."""
    assert divide(root).layout == TREES[name][0]


def test_no_other_layout_recognises_a_tree(root, name):
    """Else it would depend on their order what a directory is. Two take what nobody else knows."""
    with opened(root) as tree:
        known = {layout.name for layout in LAYOUTS if layout.recognises(LayoutTree(tree), b"")}
    assert known - FALLBACKS == {TREES[name][0]} - FALLBACKS


class Counted(Tree):
    """A tree that counts how often it was asked."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree.root_fd)
        self.asked = 0

    def listing(self, path: bytes = b"") -> dict[bytes, int]:
        self.asked += 1
        return super().listing(path)

    def stat(self, path: bytes) -> os.stat_result | None:
        self.asked += 1
        return super().stat(path)

    def read(self, path: bytes, limit: int = 1 << 20) -> bytes | None:
        self.asked += 1
        return super().read(path, limit)


@pytest.mark.parametrize(
    "layout", [each for each in LAYOUTS if each.name not in FALLBACKS], ids=lambda x: x.name
)
def test_a_directory_that_is_no_cache_costs_one_look(tmp_path, layout):
    """A container asks about each of its 20,000 children; the names alone must say no."""
    root = os.fsencode(tmp_path)
    for number in range(50):
        put(root + b"/experiment-%d/model.bin" % number)
        put(root + b"/notes-%d.txt" % number)
    with opened(root) as tree:
        counted = Counted(tree)
        assert not layout.recognises(counted, b"")
    assert counted.asked <= 3


def test_names_are_unique_and_paths_exist(root):
    """A claim of what is not there could never go, nor be told from another."""
    for name, claim in claims(divide(root)).items():
        assert name
        assert claim.paths
        for path in (*claim.paths, *claim.locks, *claim.shared):
            assert os.path.lexists(root + b"/" + path), (name, path)
        assert all(os.path.isdir(root + b"/" + husk) for husk in claim.husks)


def test_no_claim_holds_what_another_must_keep(root):
    """A nested claim may only be one that its surroundings may take along."""
    found = divide(root).claims
    for claim in found:
        for other in found:
            if other is claim:
                continue
            assert not set(claim.paths) & set(other.paths)
            inside = [path for path in other.paths if covers(claim.paths, path)]
            assert not inside or (other.keep is None or claim.keep is not None)
            assert not inside or other.partial


def test_shared_data_lies_in_no_claim_and_is_used_by_one(root):
    """It would otherwise go with the first of its users."""
    found = divide(root)
    for each in found.shared:
        assert any(each.path in claim.shared for claim in found.claims)
        assert not any(covers(claim.paths, each.path) for claim in found.claims)
    assert {path for claim in found.claims for path in claim.shared} == {each.path for each in found.shared}


def test_everything_is_claimed_shared_or_foreign(root):
    """Nothing is lost silently; eviction's own things and emptied directories are nobody's."""
    found = divide(root)
    owned = (
        *(path for claim in found.claims for path in claim.paths),
        *(path for each in found.shared for path in (each.path, *each.companions)),
        *(each.path for each in found.foreign),
    )
    for path in everything(root):
        ours = path.startswith((b".cachewarden-trash/", b".cw-"))
        assert covers(owned, path) != ours, path


def test_the_sum_of_the_parts_is_the_tree(root):
    """Entries, what is foreign and the trash: no byte is counted twice or forgotten."""
    found = divide(root)
    fd = os.open(root, os.O_RDONLY)
    try:
        inventory = scan(fd, found, trash_names=(b".cachewarden-trash",))
    finally:
        os.close(fd)
    inodes = {}
    for path in everything(root):
        each = os.lstat(root + b"/" + path)
        if stat.S_ISREG(each.st_mode):
            inodes[each.st_dev, each.st_ino] = each.st_blocks * 512
    entries = sum(entry.measure.bytes for entry in inventory.entries)
    assert entries + inventory.foreign_bytes + inventory.trash_bytes == inventory.bytes
    assert inventory.bytes == sum(inodes.values())
    assert {entry.name for entry in inventory.entries} == {claim.name for claim in found.claims}


def test_kinds_and_costs_are_those_that_the_layout_names(root):
    """The documentation lists them."""
    known = {each.name: each.kinds for each in LAYOUTS}
    for claim in divide(root).claims:
        assert claim.cost in known[claim.layout][claim.kind].costs
        assert claim.cost is not Cost.LOST or claim.keep is not None


def test_any_one_entry_goes_and_the_others_stay_usable(root, tmp_path):
    """By the rules of the tool that reads them, with the same paths and the same data behind every link."""
    usable = {each.name: fixture(each.name).usable for each in LAYOUTS}
    before = divide(root)
    entries = claims(before)
    reached = {path for path in everything(root) if os.path.exists(root + b"/" + path)}
    for index, (name, gone) in enumerate(entries.items()):
        if gone.keep is not None:
            continue
        copy = os.fsencode(tmp_path) + b"/copy%d" % index
        shutil.copytree(root, copy, symlinks=True)
        remove(copy, before, gone)
        after = claims(divide(copy))
        repo = name.partition(b"@")[0]
        for other, claim in entries.items():
            if claim is gone or covers(gone.paths, claim.paths[0]):
                continue
            assert usable[claim.layout](copy, claim), (name, other)
            if gone.layout == "hub" and other.startswith(repo):
                continue  # its siblings: with one revision left they are one entry again
            # What it shared with the one that went is its own now.
            assert set(claim.paths) <= set(after[other].paths) <= {*claim.paths, *claim.shared}
        used = {path for path in reached if os.path.lexists(copy + b"/" + path)}
        assert all(os.path.exists(copy + b"/" + path) for path in used), name
        shutil.rmtree(copy)


def contents(root: bytes) -> dict[bytes, bytes]:
    found = {}
    for path in everything(root):
        if os.path.isfile(root + b"/" + path):
            with open(root + b"/" + path, "rb") as file:
                found[path] = file.read()
    return found


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_evict_all_takes_every_entry_and_leaves_what_must_stay(tmp_path, layout):
    """A whole pass with the policy that keeps nothing: guarded entries and strangers keep their content."""
    field = Field(tmp_path)
    root = os.fsencode(field.root)
    module = fixture(layout.name)
    module.build(root)
    shutil.rmtree(root + b"/.cachewarden-trash", ignore_errors=True)
    shutil.rmtree(root + b"/.cw-m1", ignore_errors=True)
    long_ago = time.time() - 100 * 86400
    for here, below, names in os.walk(root, topdown=False):
        for each in (*names, *below):
            os.utime(os.path.join(here, each), (long_ago, long_ago), follow_symlinks=False)
    before, there = divide(root), contents(root)
    kept = [path for claim in before.claims if claim.keep is not None for path in claim.paths]
    kept += [each.path for each in before.foreign]
    free = [path for claim in before.claims if claim.keep is None for path in claim.paths]
    field.clock.advance(HOUR)
    field.run(policy(evict_all=True, partial_max_idle=1))
    after = contents(root)
    assert not [path for path in after if covers(tuple(free), path) and not covers(tuple(kept), path)]
    shared = {path for each in before.shared if not each.kept for path in (each.path, *each.companions)}
    staying = {
        path: text
        for path, text in there.items()
        if covers((*kept, *module.STAYS), path) and path not in shared
    }
    assert {path: after.get(path) for path in staying} == staying
    assert all(os.path.lexists(root + b"/" + path) for path in module.STAYS)


def test_odd_names_beside_everything_crash_nothing_and_are_accounted_for(root):
    """In every directory: names that no tool gives, of files and of directories."""
    for here, _, _ in list(os.walk(root)):
        for number, name in enumerate(ODD):
            with contextlib.suppress(FileExistsError, IsADirectoryError, NotADirectoryError):
                put(here + b"/" + name + (b"/f" if number % 2 else b""))
    test_everything_is_claimed_shared_or_foreign(root)
    test_names_are_unique_and_paths_exist(root)


def test_an_unreadable_part_crashes_nothing_and_is_remembered(root, needs_root, tmp_path):
    """Read as a user who may not: what cannot be judged is still claimed or foreign."""
    os.chmod(tmp_path, 0o755)
    for each in tmp_path.parents:
        if each.is_relative_to("/tmp") and each != Path("/tmp"):
            os.chmod(each, 0o755)
    holes = [os.path.join(root, name) for name in os.listdir(root) if os.path.isdir(os.path.join(root, name))]
    for hole in holes:
        os.chmod(hole, 0)
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            found = divide(root)
            names = [path for claim in found.claims for path in claim.paths] + [
                each.path for each in found.foreign
            ]
            missing = {os.path.basename(each) for each in holes} - {path.split(b"/")[0] for path in names}
            lost = missing - {b".cachewarden-trash", b".cw-m1"}
            free = [
                claim
                for claim in found.claims
                if claim.keep is None and claim.paths[0] in map(os.path.basename, holes)
            ]
            os._exit(0 if not lost and not free else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_unknown_layout_is_an_error_that_names_the_known_ones(tmp_path):
    """Configuration is checked with the same list."""
    with pytest.raises(LayoutError, match=r"auto, .*hub, .*accelerate, plain"):
        divide(os.fsencode(tmp_path), "hubb")


@pytest.mark.parametrize("name", layout_names())
def test_an_empty_directory_suits_every_layout(tmp_path, name):
    """A cache that is still to be filled."""
    found = divide(os.fsencode(tmp_path), name)
    assert (found.claims, found.foreign, found.warnings) == ((), (), ())


def test_a_layout_that_does_not_fit_leaves_everything_alone_and_says_so(tmp_path):
    """To guess would be to delete."""
    root = os.fsencode(tmp_path)
    put(root + b"/thesis/chapter")
    found = divide(root, "hub")
    assert found.claims == ()
    assert [each.path for each in found.foreign] == [b"thesis"]
    assert len(found.warnings) == 1
    assert "hub" in found.warnings[0]


def test_plain_by_name_over_a_known_shape_does_as_told_and_warns(tmp_path):
    """The administrator's word counts, and he learns what it costs."""
    root = os.fsencode(tmp_path)
    repository(root)
    found = divide(root, "plain")
    assert set(claims(found)) == {b"models--o--m"}
    assert "hub" in found.warnings[0]
    assert divide(root, "accelerate").layout == "hub"
