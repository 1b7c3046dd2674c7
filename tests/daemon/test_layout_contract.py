"""What holds for every layout, over trees of every kind."""

import os
import shutil
from pathlib import Path

import pytest
from tests.daemon.layout_trees import (
    A,
    B,
    Build,
    C,
    blob,
    checkpoint,
    claims,
    divide,
    everything,
    link,
    offload,
    put,
    repository,
    store,
)

from cachewarden.errors import LayoutError
from cachewarden.inventory import Claim, Split
from cachewarden.layouts import LAYOUTS, layout_names
from cachewarden_policies.reasons import Cost

ODD = (b"\xff\xfe", b"a\nERROR disabled", b'q"uo\\te', "é".encode(), " e\u0301".encode(), b"-rf", b"x" * 255)


def plain_tree(root: bytes) -> None:
    """Directories, a file, a link, and what eviction itself leaves."""
    for name in (*ODD, b"one", b"two"):
        put(root + b"/" + name + b"/f")
    put(root + b"/file")
    link(root + b"/away", b"/nowhere")
    put(root + b"/.cachewarden-trash/p-1/f")
    put(root + b"/.cw-m1/f")


def hub_tree(root: bytes) -> None:
    """Whole repositories, revisions, a shared store, odd names, furniture and a stranger."""
    repository(root)
    several = repository(root, b"datasets--o--several", A, B, C)
    put(several + b"/refs/refs/pr/1", A + b"\n")
    put(several + b"/refs/gone", b"d" * 40)
    blob(several, b"nobody's")
    put(several + b"/blobs/old.incomplete")
    for name in ODD[:-1]:
        repository(root, b"models--" + name)
        repository(root, b"models--two--" + name, A, B)
    store(root, b"models--s--one", b"models--s--two")
    put(root + b"/.locks/models--o--m/common.lock")
    put(root + b"/.DS_Store")
    put(root + b"/stranger/file")


def accelerate_tree(root: bytes) -> None:
    """Everything that a `.accelerate` folder may hold."""
    put(root + b"/default_config.yaml")
    offload(root + b"/offload/model")
    offload(root + b"/scratch")
    for number in (b"0", b"1", b"10"):
        checkpoint(root + b"/checkpoints/checkpoint_" + number)
    checkpoint(root + b"/group/run/checkpoints/checkpoint_0")
    put(root + b"/inductor/fxgraph/ab/key/f")
    put(root + b"/inductor/locks/key.lock", b"")
    put(root + b"/triton/" + b"A" * 52 + b"/k.cubin")
    put(root + b"/triton/K2/__grp__k.json")
    for name in (
        b"a-00001-of-00002.safetensors",
        b"a-00002-of-00002.safetensors",
        b"a.safetensors.index.json",
    ):
        put(root + b"/" + name)
    for name in ODD:
        put(root + b"/" + name + b"/f")
    hub_tree(root + b"/nested/hub")


def home_tree(root: bytes) -> None:
    """A whole home of Hugging Face."""
    hub_tree(root + b"/hub")
    put(root + b"/token")
    put(root + b"/accelerate/default_config.yaml")
    put(root + b"/xet/logs/l")
    put(root + b"/mine/f")


TREES: dict[str, tuple[str, Build]] = {
    "plain": ("plain", plain_tree),
    "hub": ("hub", hub_tree),
    "accelerate": ("accelerate", accelerate_tree),
    "home": ("accelerate", home_tree),
    "empty": ("plain", bytes),
}


@pytest.fixture(params=TREES)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> bytes:
    path = os.fsencode(tmp_path) + b"/location"
    os.mkdir(path)
    TREES[request.param][1](path)
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


@pytest.mark.parametrize("name", TREES)
def test_a_tree_is_recognised_by_its_shape_alone(tmp_path, name):
    """The directory's own name says nothing."""
    layout, build = TREES[name]
    path = os.fsencode(tmp_path) + b"/any name"
    os.mkdir(path)
    build(path)
    assert divide(path).layout == layout


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


def test_kinds_and_costs_are_those_that_the_layout_names(root):
    """The documentation lists them."""
    known = {each.name: each.kinds for each in LAYOUTS}
    for claim in divide(root).claims:
        assert known[claim.layout][claim.kind] is claim.cost
        assert claim.cost is not Cost.LOST or claim.keep is not None


def test_any_one_entry_goes_and_the_others_stay_as_they_were(root, tmp_path):
    """Same claims, same paths, same data behind every link."""
    names = [claim.name for claim in divide(root).claims if claim.keep is None]
    for index, name in enumerate(names):
        copy = os.fsencode(tmp_path) + b"/copy%d" % index
        shutil.copytree(root, copy, symlinks=True)
        before = divide(copy)
        reached = {path for path in everything(copy) if os.path.exists(copy + b"/" + path)}
        gone = claims(before)[name]
        remove(copy, before, gone)
        after = claims(divide(copy))
        repo = name.partition(b"@")[0]
        for other, claim in claims(before).items():
            if other.startswith(repo) and (
                gone.kind in ("revision", "repo") or covers(gone.paths, claim.paths[0])
            ):
                continue  # its siblings: with one revision left they are one entry again
            assert after[other].paths == claim.paths
        used = {path for path in reached if os.path.lexists(copy + b"/" + path)}
        assert all(os.path.exists(copy + b"/" + path) for path in used), name
        shutil.rmtree(copy)


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
    with pytest.raises(LayoutError, match="auto, hub, accelerate, plain"):
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
