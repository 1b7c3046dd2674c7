"""What cannot be made again is found however deep it lies, and keeps what would take it along."""

import os
import resource
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.daemon.layout_trees import checkpoint, claims, divide, offload, opened, put, repository

from cachewarden.inventory import Split
from cachewarden.layouts.descent import descend
from cachewarden_policies.reasons import Cost, KeepReason

LAYOUTS = ("auto", "accelerate")
HYDRA = b"outputs/2026-01-01/12-00-00/run1"
DEPTHS = (1, 3, 4, 5, 6, 9, 31, 32, 33, 60)


@pytest.fixture
def root(tmp_path):
    return os.fsencode(tmp_path)


def goes(found: Split, path: bytes) -> bool:
    """Whether `path` would go with some entry that may go."""
    return any(
        path == each or path.startswith(each + b"/")
        for claim in found.claims
        if claim.keep is None
        for each in claim.paths
    )


def kept(found: Split, path: bytes) -> bool:
    """Whether `path` is in a claim that may not go, so that an inventory shows it."""
    return any(
        path == each or path.startswith(each + b"/")
        for claim in found.claims
        if claim.keep is not None
        for each in claim.paths
    )


def deep(depth: int) -> bytes:
    return b"/".join(b"d%d" % level for level in range(depth))


@pytest.fixture
def bottom(root):
    """3,000 nested directories, each with a sibling that has one below it; the way down is the path."""
    here = os.open(root, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        os.mkdir("side", dir_fd=here)
        os.mkdir("side/below", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    yield here
    os.close(here)
    subprocess.run(["rm", "-rf", "--", root + b"/d", root + b"/side"], check=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_run_of_hydra_gives_up_everything_but_its_checkpoints(root, layout):
    """Its folders are containers; what is beside the checkpoints is entries as before."""
    for number in (0, 1):
        checkpoint(root + b"/" + HYDRA + b"/checkpoints/checkpoint_%d" % number)
    put(root + b"/" + HYDRA + b"/scratch/file")
    put(root + b"/outputs/2025-12-31/12-00-00/run/a/b/c/file")
    found = divide(root, layout)
    first, second = (HYDRA + b"/checkpoints/checkpoint_%d" % number for number in (0, 1))
    assert {name: (each.kind, each.keep) for name, each in claims(found).items()} == {
        first: ("checkpoint", KeepReason.PROTECTED),
        second: ("checkpoint", KeepReason.PROTECTED),
        HYDRA + b"/scratch": ("plain", None),
        b"outputs/2025-12-31": ("plain", None),
    }
    opted_in = claims(divide(root, layout, keep_checkpoints=1))
    assert [opted_in[name].keep for name in (first, second)] == [None, KeepReason.PROTECTED]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(
    "lost",
    [
        b"checkpoint_0/model.safetensors",
        b"checkpoints/notes.txt",
        b"final/random_states_0.pkl",
        b"best/pytorch_model_fsdp_0/__0_0.distcp",
        b"saved/dataset_dict.json",
        b"mine/default_config.yaml",
        b"home/token",
    ],
)
def test_what_would_be_lost_stays_at_every_depth(root, layout, depth, lost):
    """And an ordinary cache of the same depth beside it goes."""
    path = deep(depth) + b"/" + lost
    put(root + b"/" + path)
    put(root + b"/cache/" + deep(depth) + b"/blob")
    found = divide(root, layout)
    assert found.layout == "accelerate"
    assert not goes(found, path)
    assert kept(found, path) or any(path.startswith(each.path) for each in found.foreign)
    assert goes(found, b"cache/" + deep(depth) + b"/blob")


@pytest.mark.parametrize("depth", [0, 1, 5, 40])
@pytest.mark.parametrize(
    "cache",
    [b"inductor/fxgraph/x", b"triton/" + b"A" * 52 + b"/x", b"triton/K/__grp__k.json", b"llama/index.json"],
)
def test_a_cache_that_somebody_trains_into_stays(root, cache, depth):
    """Also where the location itself is that cache."""
    put(root + b"/" + cache)
    offload(root + b"/llama")
    inside = os.path.dirname(cache) + b"/" + deep(depth) + b"/run/checkpoint-500/optimizer.pt"
    put(root + b"/" + inside)
    assert not goes(divide(root, "accelerate"), inside)
    top, _, rest = inside.partition(b"/")
    assert not goes(divide(root + b"/" + top, "accelerate"), rest)


def test_a_checkpoint_beside_an_offload_folder_stays_and_the_folder_goes(root):
    """A guard is no wider than what it guards."""
    offload(root + b"/offload/llama")
    checkpoint(root + b"/offload/notes/a/b/c/d/checkpoint_3")
    found = divide(root)
    assert goes(found, b"offload/llama/index.json")
    assert not goes(found, b"offload/notes/a/b/c/d/checkpoint_3/optimizer.bin")


def test_a_deep_hub_cache_beside_a_checkpoint_is_divided_as_one(root):
    """Where something would be lost, parts are told apart below the fourth level too."""
    checkpoint(root + b"/a/b/c/d/e/checkpoint_3")
    repository(root + b"/a/b/c/d/e/hub")
    assert claims(divide(root))[b"a/b/c/d/e/hub/models--o--m"].kind == "repo"


def test_a_link_to_a_checkpoint_makes_no_container(root, tmp_path_factory):
    """Only the link would go: it is not followed, into the location or out of it."""
    outside = os.fsencode(tmp_path_factory.mktemp("outside"))
    checkpoint(outside + b"/checkpoint_0")
    os.makedirs(root + b"/a/b/c/d/e")
    os.symlink(outside, root + b"/a/b/c/d/e/away")
    os.symlink(b"..", root + b"/a/b/c/d/e/round")
    assert [(each.name, each.keep) for each in divide(root, "accelerate").claims] == [(b"a", None)]


def test_a_run_folder_is_no_checkpoint_of_a_series(root):
    """A trainer leaves its state beside its checkpoints: `run1` must not go as an older `run2`."""
    for run in (b"run1", b"run2"):
        put(root + b"/" + run + b"/trainer_state.json")
        put(root + b"/" + run + b"/deep/checkpoint-500/optimizer.pt")
    for number in (1, 2):
        put(root + b"/sharded/s%d/optimizer_0/__0_0.distcp" % number)
    found = divide(root, keep_checkpoints=1)
    assert not goes(found, b"run1/trainer_state.json")
    assert {each.name for each in found.claims if each.keep is None} == {b"sharded/s1"}


def test_a_directory_with_an_unreadable_part_below_is_kept(root, tmp_path):
    """What was not looked at may be anything; without capabilities, as a service account is."""
    put(root + b"/a/b/c/d/e/f/file")
    for each in (tmp_path, *tmp_path.parents):
        if each.is_relative_to("/tmp") and each != Path("/tmp"):
            each.chmod(0o755)
    os.chmod(root + b"/a/b/c/d/e/f", 0)
    child = os.fork()
    if child == 0:
        status = 2
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            (claim,) = divide(root, "accelerate").claims
            status = 0 if (claim.name, claim.keep) == (b"a", KeepReason.UNKNOWN) else 1
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.chmod(root + b"/a/b/c/d/e/f", 0o755)
    assert status == 0


def test_three_thousand_levels_are_looked_through_to_the_bottom(root, bottom):
    """Deeper than recursion, open files and the longest path allow, and in linear time."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        begin = time.monotonic()
        assert {each.keep for each in divide(root, "accelerate").claims} == {None}
        with opened(root) as tree:
            assert sum(1 for _ in descend(tree, b"")) == 9001
        os.close(os.open("optimizer.bin", os.O_WRONLY | os.O_CREAT, dir_fd=bottom))
        found = divide(root)
        assert time.monotonic() - begin < 60
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    lost = [each for each in found.claims if each.keep is not None]
    assert [(each.keep, each.cost) for each in lost] == [(KeepReason.PROTECTED, Cost.LOST)]
    assert not goes(found, b"d/" * 3000 + b"optimizer.bin")
    assert goes(found, b"side/below")


def test_a_directory_that_is_moved_during_the_look_is_left_and_remembered(root):
    """The way back up is checked: `..` of a moved directory leads elsewhere."""
    for level in range(1, 100):
        os.makedirs(root + b"/top/" + b"d/" * level + b"z")
    put(root + b"/top/d/z/file")
    with opened(root) as tree:
        for path, _ in descend(tree, b"top"):
            if path == b"top/" + b"/".join([b"d"] * 99):
                shutil.move(root + b"/top/d", root + b"/away")
        assert all(path.startswith(b"top/d") or path == b"top" for path, _ in tree.unreadable)
