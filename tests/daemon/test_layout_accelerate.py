"""A configured `.accelerate` folder: parts are judged by shape, and what would be lost stays."""

import os

import pytest
from tests.daemon.layout_trees import (
    LONG_AGO,
    checkpoint,
    claims,
    divide,
    offload,
    put,
    repository,
)

from cachewarden.inventory import Foreign
from cachewarden.layouts.accelerate.checkpoints import Checkpoint, expendable
from cachewarden_policies.policy import DAY, HOUR
from cachewarden_policies.reasons import Cost, KeepReason


@pytest.fixture
def root(tmp_path):
    return os.fsencode(tmp_path)


def free(root: bytes, **options: int) -> set[bytes]:
    """Names of the entries that may go."""
    return {name for name, each in claims(divide(root, **options)).items() if each.keep is None}


def kinds(root: bytes) -> dict[bytes, str]:
    return {name: each.kind for name, each in claims(divide(root)).items()}


def test_offload_folders_are_one_entry_each_and_their_container_is_none(root):
    """One tensor less breaks the model at its next step, so that a folder goes whole."""
    offload(root + b"/offload/llama")
    offload(root + b"/offload/gpt")
    offload(root + b"/direct")
    put(root + b"/offload/notes.txt")
    assert kinds(root) == {
        b"offload/llama": "offload",
        b"offload/gpt": "offload",
        b"offload/notes.txt": "plain",
        b"direct": "offload",
    }


def test_a_location_that_is_an_offload_folder_goes_whole_with_its_index_first(root):
    """The location itself stays, so that its files are the paths of one entry."""
    offload(root)
    (claim,) = divide(root).claims
    assert claim.name == b"@offload"
    assert claim.paths == (b"index.json", b"layer.bias.dat", b"layer.weight.dat")


@pytest.mark.parametrize(
    "name", [b"default_config.yaml", b"default_config.json", b"config.yaml", b"state.yaml", b"zero3.yml"]
)
def test_configuration_is_protected_and_enough_to_recognise_the_folder(root, name):
    """The rest of the folder is still entries, or a project's state."""
    put(root + b"/" + name)
    put(root + b"/other/file")
    found = claims(divide(root))
    assert divide(root).layout == "accelerate"
    assert (found[name].keep, found[name].cost) == (KeepReason.PROTECTED, Cost.LOST)
    assert (found[b"other"].keep is None) == (name != b"state.yaml")


def test_a_workflow_tools_folder_is_protected_beside_the_caches_in_it(root):
    """`state.yaml` says that a tool keeps a project's state here."""
    put(root + b"/state.yaml")
    put(root + b"/planning/plan.md")
    put(root + b"/review/shard-0/x.npy")
    offload(root + b"/offload/model")
    assert free(root) == {b"offload/model"}


@pytest.mark.parametrize(
    "name",
    [
        b"optimizer.bin",
        b"optimizer_1.bin",
        b"scheduler.bin",
        b"sampler.bin",
        b"scaler.pt",
        b"random_states_3.pkl",
        b"custom_checkpoint_0.pkl",
        b"trainer_state.json",
        b"rng_state_0.pth",
        b"pytorch_model_fsdp_0/__0_0.distcp",
        b"global_step100/mp_rank_00_model_states.pt",
    ],
)
def test_training_state_makes_a_checkpoint_wherever_it_lies(root, name):
    """In the folder, in a run's folder, in a group of runs; as the location itself."""
    for place in (b"/final", b"/run/best", b"/group/run/checkpoints/checkpoint_0"):
        put(root + place + b"/" + name)
    put(root + b"/group/run/scratch/file")
    assert {name for name, kind in kinds(root).items() if kind == "checkpoint"} == {
        b"final",
        b"run/best",
        b"group/run/checkpoints/checkpoint_0",
    }
    assert free(root) == {b"group/run/scratch"}
    assert free(root + b"/final") == set()


def test_everything_below_checkpoints_is_protected(root):
    """A name there counts more than a shape: accelerate resumes from what lies in it."""
    put(root + b"/checkpoints/notes/x.npy")
    put(root + b"/checkpoints/loose.bin")
    offload(root + b"/checkpoints/odd")
    repository(root + b"/checkpoints/hub")
    put(root + b"/checkpoints/checkpoint_7/model.safetensors")
    assert free(root, keep_checkpoints=1) == set()
    assert b"checkpoints" not in kinds(root)


def test_the_newest_checkpoints_stay_where_others_may_go(root):
    """By number, not by name: 10 is newer than 9."""
    for number in range(11):
        checkpoint(root + b"/checkpoints/checkpoint_%d" % number)
    checkpoint(root + b"/checkpoints/best")
    assert free(root) == set()
    assert free(root, keep_checkpoints=2) == {b"checkpoints/checkpoint_%d" % number for number in range(9)}
    found = claims(divide(root, keep_checkpoints=2))
    assert found[b"checkpoints/checkpoint_0"].cost is Cost.LOST


def test_an_offload_folder_with_a_checkpoint_in_it_stays(root):
    """It would take the checkpoint along."""
    offload(root + b"/both")
    checkpoint(root + b"/both/checkpoint_1")
    assert free(root, keep_checkpoints=1) == set()


class TestExpendable:
    """Which checkpoints of a series may go."""

    def names(self, keep: int | None, *checkpoints: tuple[bytes, int]) -> set[bytes]:
        return set(expendable([Checkpoint(path, mtime) for path, mtime in checkpoints], keep))

    def test_none_without_consent(self):
        assert self.names(None, (b"c_1", 1), (b"c_2", 2)) == set()

    def test_the_newest_always_stays(self):
        assert self.names(0, (b"c_1", 1), (b"c_2", 2)) == {b"c_1"}

    def test_equal_numbers_are_told_by_time(self):
        assert self.names(1, (b"c_01", 1), (b"c_1", 2)) == {b"c_01"}

    def test_each_directory_and_each_name_is_a_series_of_its_own(self):
        assert self.names(1, (b"x/c_1", 1), (b"y/c_2", 1), (b"x/best", 1), (b"x/epoch3", 1)) == set()

    def test_a_run_that_was_started_again_keeps_what_it_writes(self):
        assert self.names(1, (b"c_0", LONG_AGO + DAY), (b"c_1", LONG_AGO), (b"c_9", LONG_AGO)) == {b"c_1"}

    def test_times_that_a_copy_made_do_not_count(self):
        assert self.names(1, (b"c_0", LONG_AGO + 10**9), (b"c_9", LONG_AGO)) == {b"c_0"}


def test_compile_caches_are_divided_by_their_own_layouts(root):
    """Each graph and each kernel by itself, wherever the caches lie; locks are held and stay."""
    put(root + b"/inductor/fxgraph/ab/key/f")
    put(root + b"/inductor/triton/0/" + b"B" * 52 + b"/k.cubin")
    put(root + b"/inductor/locks/key.lock", b"")
    put(root + b"/group/triton/" + b"A" * 52 + b"/k.cubin")
    found = claims(divide(root))
    assert {name: (each.layout, each.kind) for name, each in found.items()} == {
        b"inductor/fxgraph/ab/key": ("inductor", "graph"),
        b"inductor/triton/0/" + b"B" * 52: ("triton", "key"),
        b"group/triton/" + b"A" * 52: ("triton", "key"),
    }
    assert found[b"inductor/fxgraph/ab/key"].locks == (b"inductor/locks/key.lock",)


def test_a_nested_hub_cache_is_divided_as_one_with_its_place_in_every_path(root):
    """Repositories, locks and links keep working below a prefix."""
    offload(root + b"/offload/m")
    several = repository(root + b"/models/hub", b"models--o--m", b"a" * 40, b"b" * 40)
    put(root + b"/models/hub/.locks/models--o--m/common.lock")
    found = divide(root)
    revision = claims(found)[b"models/hub/models--o--m@" + b"a" * 40]
    assert revision.paths[0] == several[len(root) + 1 :] + b"/snapshots/" + b"a" * 40
    assert revision.locks == (b"models/hub/.locks/models--o--m/common.lock",)
    assert revision.shared == (b"models/hub/models--o--m/blobs/common",)
    assert all(path.startswith(b"models/hub/") for path in (*revision.paths, *revision.husks))


def test_prepared_data_and_sets_of_loose_files_go_whole(root):
    """Half of a set looks complete and is never made again."""
    put(root + b"/shards/shard-000.tar")
    put(root + b"/shards/index.json")
    put(root + b"/corpus.bin")
    put(root + b"/corpus.idx")
    put(root + b"/alone.bin")
    for name in (
        b"m-00001-of-00002.safetensors",
        b"m-00002-of-00002.safetensors",
        b"m.safetensors.index.json",
    ):
        put(root + b"/" + name)
    found = claims(divide(root, "accelerate"))
    assert {name: (each.kind, each.paths) for name, each in found.items()} == {
        b"shards": ("prepared", (b"shards",)),
        b"corpus.idx": ("prepared", (b"corpus.idx", b"corpus.bin")),
        b"alone.bin": ("plain", (b"alone.bin",)),
        b"m.safetensors.index.json": (
            "prepared",
            (
                b"m.safetensors.index.json",
                b"m-00001-of-00002.safetensors",
                b"m-00002-of-00002.safetensors",
            ),
        ),
    }


@pytest.mark.parametrize(
    "names", [(b"dataset_dict.json",), (b"state.json", b"dataset_info.json", b"data.arrow")]
)
def test_a_dataset_that_somebody_saved_is_protected(root, names):
    """`save_to_disk` is how people keep their work, not how a library fills its cache."""
    for name in names:
        put(root + b"/mine/" + name)
    offload(root + b"/offload/m")
    assert free(root) == {b"offload/m"}


def test_a_home_of_hugging_face_gives_up_its_repositories_and_nothing_else(root):
    """Credentials and state are left alone in silence, strangers with one warning."""
    repository(root + b"/hub")
    put(root + b"/hub/my_experiments/ckpt.pt")
    for name in (b"token", b"stored_tokens", b"stored_tokens.lock", b".agent_harnesses.json"):
        put(root + b"/" + name)
    put(root + b"/accelerate/default_config.yaml")
    put(root + b"/modules/transformers_modules/x.py")
    put(root + b"/sandbox/pools/host")
    put(root + b"/datasets/notes/mine/d.arrow")
    put(root + b"/notes/x.npy")
    found = divide(root)
    assert free(root) == {b"hub/models--o--m"}
    assert Foreign(b"accelerate", known=True) in found.foreign
    assert {each.path for each in found.foreign if not each.known} == {
        b"hub/my_experiments",
        b"notes",
        b"datasets",
    }
    naming = [text for text in found.warnings if "my_experiments" in text]
    assert len(naming) == 1
    assert not any("token" in text or "modules" in text for text in found.warnings)


@pytest.mark.parametrize("extra", [b"token", b"accelerate/default_config.json", b"xet/logs/l"])
def test_a_home_is_told_by_what_lies_beside_its_hub(root, extra):
    """Elsewhere, a directory beside a hub cache is a plain entry."""
    repository(root + b"/hub")
    put(root + b"/other/file")
    assert free(root) == {b"hub/models--o--m", b"other"}
    put(root + b"/" + extra)
    assert free(root) == {b"hub/models--o--m"}


def test_young_partial_files_and_open_elsewhere_hold_what_they_are_in(root):
    """An NFS client's removed but open tensor keeps the model."""
    offload(root + b"/offload/m")
    put(root + b"/offload/m/.nfs0001", mtime_ns=LONG_AGO + HOUR)
    assert claims(divide(root))[b"offload/m"].keep is KeepReason.IN_USE


@pytest.mark.parametrize("place", [b"", b"/far/down/and/below/all/that/is/looked/at"])
def test_a_model_that_somebody_downloaded_into_a_folder_is_protected(root, place):
    """With `local_dir`, the files are his own, at whatever depth; its neighbours are entries all the same."""
    put(root + place + b"/mine/.cache/huggingface/download/model.safetensors.metadata")
    put(root + place + b"/mine/model.safetensors")
    put(root + place + b"/other/file")
    offload(root + b"/offload/m")
    found = divide(root, "accelerate")
    names = {(place + b"/mine/" + name).lstrip(b"/") for name in (b".cache", b"model.safetensors")}
    assert names <= {each.path for each in found.foreign if each.known}
    assert free(root) == {b"offload/m", (place + b"/other").lstrip(b"/")}


def test_a_model_that_somebody_downloaded_into_an_offload_folder_keeps_that(root):
    """Going whole, the folder would take it along."""
    offload(root + b"/offload/m")
    put(root + b"/offload/m/mine/.cache/huggingface/download/model.safetensors.metadata")
    assert claims(divide(root))[b"offload/m"].keep is KeepReason.PROTECTED
