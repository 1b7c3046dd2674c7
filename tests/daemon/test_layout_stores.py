"""Model stores but Ollama's: what goes together, what was made by somebody, what is only half there."""

import hashlib
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.daemon.layout_fixtures import tfds
from tests.daemon.layout_trees import LONG_AGO, NOW, claims, divide, link, put

from cachewarden.layouts.tfds import downloads_again
from cachewarden_policies.policy import DAY, HOUR
from cachewarden_policies.reasons import Cost, KeepReason


@pytest.fixture
def root(tmp_path):
    return os.fsencode(tmp_path)


def keeps(found):
    """The guard of each claim by name."""
    return {name: claim.keep for name, claim in claims(found).items()}


def strange(found):
    """Paths that are named in a warning."""
    return {each.path for each in found.foreign if not each.known}


class TestTorchHub:
    """Weights by file, code by repository, and trust that hangs on a directory's being there."""

    def repository(self, root, name):
        put(root + b"/" + name + b"/hubconf.py")

    @pytest.mark.parametrize(
        ("name", "trusted"),
        [
            (b"pytorch_vision_v0.10.0", True),
            (b"facebookresearch_dinov2_main", True),
            (b"ultralytics_yolov5_master", True),
            (b"ultralytics_yolov5_fork_master", False),  # ultralytics/yolov5_fork? nobody can tell
            (b"stranger_repo_main", False),
        ],
    )
    def test_a_repository_goes_only_if_it_stays_trusted_without_its_directory(self, root, name, trusted):
        put(root + b"/trusted_list", b"ultralytics_yolov5\nsomebody_else\n")
        self.repository(root, name)
        assert keeps(divide(root)) == {name: None if trusted else KeepReason.PROTECTED}

    @given(st.binary(max_size=60))
    def test_no_list_crashes_and_none_trusts_a_stranger_by_accident(self, tmp_path_factory, text):
        root = os.fsencode(tmp_path_factory.mktemp("hub"))
        put(root + b"/trusted_list", text)
        self.repository(root, b"stranger_repo_main")
        expected = None if b"stranger_repo" in text.split() else KeepReason.PROTECTED
        if b"stranger_repo" not in text:
            assert keeps(divide(root)) == {b"stranger_repo_main": expected}

    def test_files_without_a_hash_are_weights_only_where_all_shows_torch_hub(self, root):
        for name in (b"resnet-0123abcd.pth", b"dinov2.pth"):
            put(root + b"/checkpoints/" + name)
        assert set(claims(divide(root))) == {b"checkpoints/resnet-0123abcd.pth"}
        put(root + b"/trusted_list")
        assert len(divide(root).claims) == 2

    @pytest.mark.parametrize("name", [b"optimizer.pt", b"rng_state.pth", b"checkpoint-10/model.pt"])
    def test_a_folder_that_somebody_trains_in_is_no_cache(self, root, name):
        put(root + b"/checkpoints/resnet-0123abcd.pth")
        put(root + b"/checkpoints/" + name)
        assert divide(root).layout == "accelerate"
        put(root + b"/trusted_list")
        found = divide(root)
        assert found.layout == "torch_hub"
        assert b"checkpoints/" + name.split(b"/")[0] in strange(found)

    def test_a_clone_is_somebodys_own(self, root):
        put(root + b"/trusted_list", b"a_b\n")
        self.repository(root, b"a_b_main")
        put(root + b"/a_b_main/.git/HEAD")
        assert divide(root).claims == ()

    @pytest.mark.parametrize(
        ("name", "later", "keep"),
        [
            (b"runs/train/exp/weights/best.pt", DAY, KeepReason.PROTECTED),
            (b"hubconf.py", DAY, KeepReason.PROTECTED),
            (b"models/__pycache__/model.cpython-311.pyc", DAY, None),
            (b"models/large.py", HOUR // 2, None),
        ],
    )
    def test_a_repository_in_which_somebody_works_stays(self, root, name, later, keep):
        """YOLOv5 trains into `runs` beside its code."""
        put(root + b"/trusted_list", b"ultralytics_yolov5\n")
        repository = b"ultralytics_yolov5_master"
        put(root + b"/" + repository + b"/README.md")
        self.repository(root, repository)
        put(root + b"/" + repository + b"/" + name, mtime_ns=LONG_AGO + later)
        assert keeps(divide(root)) == {repository: keep}

    @pytest.mark.parametrize("age", [HOUR, DAY + 1])
    def test_a_partial_file_goes_when_it_is_abandoned(self, root, age):
        put(root + b"/trusted_list")
        name = b"checkpoints/x-0123abcd.pth." + b"a" * 32 + b".partial"
        put(root + b"/" + name, mtime_ns=NOW - age)
        assert [each.partial for each in divide(root).claims] == ([True] if age > DAY else [])


class TestLlamaCpp:
    """A model is there when all its files are."""

    def test_splits_go_together_with_their_companions_after_them(self, root):
        for number in (b"1", b"2", b"3"):
            put(root + b"/m-0000" + number + b"-of-00003.gguf")
            put(root + b"/m-0000" + number + b"-of-00003.gguf.etag")
        (claim,) = divide(root).claims
        assert [path.endswith(b".gguf") for path in claim.paths] == [True] * 3 + [False] * 3

    def test_a_model_that_nobody_downloaded_stays_beside_one_that_was(self, root):
        put(root + b"/a.gguf")
        put(root + b"/a.gguf.json", b"{}")
        put(root + b"/mine.gguf")
        found = divide(root)
        assert set(claims(found)) == {b"a.gguf"}
        assert strange(found) == {b"mine.gguf"}

    def test_a_folder_of_models_without_a_mark_is_none(self, root):
        put(root + b"/mine.gguf")
        put(root + b"/config.json")
        assert divide(root).layout != "llama_cpp"


class TestModelScope:
    """Two layouts in one cache."""

    def test_revisions_go_by_themselves_and_take_empty_directories_along(self, root):
        for revision in (b"master", b"v1"):
            put(root + b"/models/o--n/snapshots/" + revision + b"/f")
        found = claims(divide(root))
        assert set(found) == {b"models/o--n/snapshots/master", b"models/o--n/snapshots/v1"}
        assert found[b"models/o--n/snapshots/v1"].husks == (b"models/o--n/snapshots", b"models/o--n")

    @pytest.mark.parametrize("age", [HOUR, DAY + 1])
    def test_a_file_that_is_being_fetched_keeps_its_revision(self, root, age):
        put(root + b"/models/o--n/snapshots/master/f.incomplete", mtime_ns=NOW - age)
        (claim,) = divide(root).claims
        assert claim.keep is (KeepReason.PARTIAL if age < DAY else None)

    def test_the_locks_of_a_repository_are_named_as_its_tools_name_them(self, root):
        put(root + b"/models/o--n/snapshots/master/f")
        put(root + b"/models/Qwen/Qwen3-0___6B/.msc")
        put(root + b"/models/._____temp/x/y")
        key = "modelscope-hub-download-lock-v2\0repo\0model\0o/n\0"
        new = b".lock/repo_" + hashlib.sha256(key.encode()).hexdigest().encode() + b".lock"
        old = b".lock/Qwen___Qwen3-0.6B"
        for name in (new, old, b".lock/other"):
            put(root + b"/" + name, b"")
        found = claims(divide(root))
        assert found[b"models/o--n/snapshots/master"].locks == (new,)
        assert found[b"models/Qwen/Qwen3-0___6B"].locks == (old,)

    def test_a_repository_of_huggingface_hub_is_none_of_its(self, root):
        put(root + b"/models--o--n/snapshots/" + b"a" * 40 + b"/f")
        put(root + b"/models--o--n/blobs/x")
        assert divide(root).layout == "hub"

    def test_a_directory_without_the_index_belongs_to_somebody(self, root):
        put(root + b"/models/._____temp/x/y", mtime_ns=NOW)
        put(root + b"/models/Qwen/known/.mdl")
        put(root + b"/models/Qwen/unknown/thesis")
        put(root + b"/models/me/thesis/chapter")
        found = divide(root)
        assert set(claims(found)) == {b"models/Qwen/known"}
        assert strange(found) == {b"models/Qwen/unknown", b"models/me"}


class TestTensorFlow:
    """TensorFlow Hub, TensorFlow Datasets, Keras."""

    def test_a_module_goes_with_its_description_and_its_lock_is_asked(self, root):
        name = b"a" * 40
        put(root + b"/" + name + b"/saved_model.pb")
        put(root + b"/" + name + b".descriptor.txt")
        put(root + b"/" + name + b".lock", b"host.1.x")
        (claim,) = divide(root).claims
        assert claim.paths == (name, name + b".descriptor.txt")
        assert claim.locks == (name + b".lock",)

    @pytest.mark.parametrize(
        ("info", "again"),
        [
            ({"downloadSize": "100"}, True),
            ({"downloadSize": 100, "moduleName": "tensorflow_datasets.x"}, True),
            ({"downloadSize": "0"}, False),
            ({}, False),
            ({"downloadSize": "-5"}, False),
            ({"downloadSize": True}, False),
            ({"downloadSize": "100", "moduleName": "thesis"}, False),
            ({"downloadSize": "100", "moduleName": "tensorflow_datasets_of_mine.x"}, False),
            ({"downloadSize": "100", "moduleName": 5}, False),
            ([], False),
        ],
    )
    def test_what_the_library_downloads_again_goes_and_nothing_else(self, info, again):
        assert downloads_again(json.dumps(info).encode()) is again

    @given(
        st.binary(max_size=300) | st.just(b"[" * 100_000) | st.just(b'{"downloadSize":' + b"9" * 9000 + b"}")
    )
    def test_no_description_crashes(self, text):
        assert downloads_again(text) in (False, True)

    def test_a_version_without_its_features_is_strange_and_stays(self, root):
        tfds.version(root + b"/mnist/3.0.1", downloadSize="5")
        put(root + b"/mnist/3.0.0/dataset_info.json", b"{}")
        found = divide(root)
        assert set(claims(found)) == {b"mnist/3.0.1"}
        assert strange(found) == {b"mnist/3.0.0"}

    def test_an_archive_and_what_was_unpacked_from_it_go_together(self, root):
        put(root + b"/keras.json")
        for name in (b"flowers.tar.gz", b"flowers_extracted/f", b"x_archive", b"x/f", b"mnist.npz"):
            put(root + b"/datasets/" + name)
        groups = {frozenset(claim.paths) for claim in divide(root).claims}
        assert groups == {
            frozenset({b"datasets/flowers.tar.gz", b"datasets/flowers_extracted"}),
            frozenset({b"datasets/x", b"datasets/x_archive"}),
            frozenset({b"datasets/mnist.npz"}),
        }

    def test_saved_models_and_links_are_somebodys_own(self, root):
        put(root + b"/keras.json")
        put(root + b"/models/mine.keras")
        put(root + b"/models/out/saved_model.pb")
        put(root + b"/models/run/optimizer.pt")
        link(root + b"/datasets/big", b"/data")
        found = divide(root)
        assert {claim.cost for claim in found.claims} == {Cost.LOST}
        assert strange(found) == {b"datasets/big"}


class TestSentenceTransformers:
    """A downloaded repository has what `save` does not write."""

    def test_a_saved_model_and_a_clone_stay(self, root):
        for name in (b"org_model", b"my_model", b"cloned_model"):
            put(root + b"/" + name + b"/modules.json")
        put(root + b"/org_model/.gitattributes")
        put(root + b"/cloned_model/.gitattributes")
        put(root + b"/cloned_model/.git/HEAD")
        assert keeps(divide(root)) == {
            b"org_model": None,
            b"my_model": KeepReason.PROTECTED,
            b"cloned_model": KeepReason.PROTECTED,
        }

    def test_models_that_somebody_saved_are_no_cache_at_all(self, root):
        put(root + b"/my_model/modules.json")
        assert divide(root).layout != "sentence_transformers"


@pytest.mark.parametrize(
    "name", [b"large.pt", b"large-v3-turbo.pt", b"tiny.en.pt", b"medium.pt", b"base.en.pt", b"large-v1.pt"]
)
def test_published_models_of_whisper_are_known_by_name(root, name):
    """Whatever else lies there is somebody's own."""
    put(root + b"/" + name)
    put(root + b"/large-finetuned.pt")
    found = divide(root)
    assert set(claims(found)) == {name}
    assert strange(found) == {b"large-finetuned.pt"}


@pytest.mark.parametrize("name", [b"large-v9.pt", b"tiny.en.v2.pt", b"xtiny.pt", b"tiny.ptx"])
def test_what_is_named_nearly_so_is_no_model_of_whisper(root, name):
    """Nothing else marks such a file."""
    put(root + b"/" + name)
    assert divide(root).layout != "whisper"


@pytest.mark.parametrize("layout", ["uv", "pip", "conda", "ccache", "bazel"])
def test_nothing_of_a_cache_with_a_tool_of_its_own_is_an_entry(root, layout):
    """And it is no stranger: the tool knows it."""
    module = __import__(f"tests.daemon.layout_fixtures.{layout}", fromlist=["build"])
    module.build(root)
    found = divide(root)
    assert (found.layout, found.claims, found.warnings) == (layout, (), ())


def test_a_partial_download_that_changes_now_is_older_than_the_age_only_when_all_of_it_is(root):
    """A directory is as young as its youngest child."""
    tmp = root + b"/" + b"d" * 40 + b"." + b"2" * 32 + b".tmp"
    put(tmp + b"/a", mtime_ns=NOW - HOUR)
    os.utime(tmp, ns=(LONG_AGO, LONG_AGO))
    assert divide(root).claims == ()
    os.utime(tmp + b"/a", ns=(LONG_AGO, LONG_AGO))
    assert [each.partial for each in divide(root).claims] == [True]
