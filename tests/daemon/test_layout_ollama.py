"""Ollama's stores: pulled and created models, shared layers, what is broken, what is nobody's."""

import json
import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.daemon.layout_fixtures.ollama import REGISTRY, blob, digest, linked_model, manifest, model
from tests.daemon.layout_trees import LONG_AGO, NOW, claims, divide, link, opened, put

from cachewarden.inventory import Split
from cachewarden.layouts.ollama.manifests import parse
from cachewarden.scan import scan
from cachewarden_policies.policy import DAY, HOUR
from cachewarden_policies.reasons import Cost, KeepReason

HEX = "0123456789abcdef"


@pytest.fixture
def root(tmp_path):
    return os.fsencode(tmp_path)


def named(text: bytes) -> bytes:
    """The path of the blob with this content."""
    return b"blobs/" + digest(text).replace(":", "-").encode()


def test_a_model_is_its_manifest_first_and_the_blobs_that_only_it_names(root):
    """The manifest is the witness: without it nobody looks for the rest."""
    one = model(root, REGISTRY + b"a/latest", b"weights a", b"licence")
    model(root, REGISTRY + b"b/latest", b"weights b", b"licence")
    found = divide(root)
    claim = claims(found)[one]
    config = b"config of weights alicence"
    assert claim.paths == (one, *sorted([named(config), named(b"weights a")]))
    assert claim.shared == (named(b"licence"),)
    assert (claim.kind, claim.cost, claim.keep) == ("model", Cost.DOWNLOAD, None)
    assert [each.path for each in found.shared] == [named(b"licence")]


def test_the_directories_of_a_name_go_with_it_and_no_other(root):
    """As the server removes them; `manifests` itself stays."""
    path = model(root, b"hf.co/org/model/Q4", b"weights")
    assert claims(divide(root))[path].husks == (
        b"manifests/hf.co/org/model",
        b"manifests/hf.co/org",
        b"manifests/hf.co",
    )


@pytest.mark.parametrize(
    "made",
    [{"created": True}, {"source": "/root/.ollama/models/blobs/sha256-x"}],
    ids=["written by create", "with a layer of another model"],
)
def test_what_was_made_here_cannot_be_pulled_again(root, made):
    """The same tree, the same names: the manifest tells."""
    path = model(root, REGISTRY + b"mine/latest", b"weights", **made)
    claim = claims(divide(root))[path]
    assert (claim.kind, claim.cost, claim.keep) == ("created", Cost.LOST, KeepReason.PROTECTED)


def test_a_manifest_of_the_time_before_they_can_be_told_apart_is_taken_for_made_here(root):
    """A created one ended in no newline either, then."""
    path = model(root, REGISTRY + b"old/latest", b"weights")
    os.utime(root + b"/" + path, (1_700_000_000, 1_700_000_000))
    assert claims(divide(root))[path].kind == "created"


def test_a_layer_of_a_created_model_stays_when_the_pulled_one_goes(root):
    """Shared with what is protected, it is in nobody's paths."""
    model(root, REGISTRY + b"llama/8b", b"weights")
    model(root, REGISTRY + b"mine/latest", b"weights", b"system", source="llama")
    found = divide(root)
    assert all(named(b"weights") not in claim.paths for claim in found.claims)
    assert all(named(b"weights") in claim.shared for claim in found.claims)


class TestManifestsTwo:
    """`manifests-v2`: a link to the blob of the manifest, a hard link, or a copy."""

    def test_a_link_leads_to_a_blob_that_goes_with_it(self, root):
        text = manifest(root, b"weights")
        path = linked_model(root, REGISTRY + b"a/latest", text)
        claim = claims(divide(root))[path]
        assert claim.paths[0] == path
        assert {named(text), named(b"weights")} < set(claim.paths)
        assert claim.keep is None

    @pytest.mark.parametrize("how", [os.link, shutil.copyfile])
    def test_a_hard_link_and_a_copy_have_that_blob_too(self, root, how):
        text = manifest(root, b"weights")
        blob(root, text)
        path = b"manifests-v2/" + REGISTRY + b"a/latest"
        os.makedirs(os.path.dirname(root + b"/" + path))
        how(root + b"/" + named(text), root + b"/" + path)
        assert named(text) in claims(divide(root))[path].paths

    def test_a_name_in_both_places_is_one_model(self, root):
        text = manifest(root, b"weights")
        new = linked_model(root, REGISTRY + b"a/latest", text)
        old = model(root, REGISTRY + b"a/latest", b"older weights")
        (claim,) = divide(root).claims
        assert claim.name == new
        assert {new, old, named(b"weights"), named(b"older weights")} <= set(claim.paths)

    @pytest.mark.parametrize(
        "target",
        [
            b"/etc/passwd",
            b"../../../../../../etc/passwd",
            b"../../../../blobs/../x",
            b"tag",
            b"a" * 300,
        ],
    )
    def test_a_link_to_anywhere_else_is_broken_and_stays(self, root, target):
        model(root, REGISTRY + b"good/latest", b"weights")
        link(root + b"/manifests-v2/" + REGISTRY + b"odd/latest", target)
        blob(root, b"nobody's")
        found = claims(divide(root))
        odd = found[b"manifests-v2/" + REGISTRY + b"odd/latest"]
        assert (odd.kind, odd.keep) == ("broken", KeepReason.UNKNOWN)
        assert odd.paths == (odd.name,)
        assert found[b"blobs@unreferenced"].keep is KeepReason.UNKNOWN

    def test_a_link_to_a_file_elsewhere_that_is_named_like_the_blob_is_broken_too(self, root):
        text = manifest(root, b"weights")
        name = blob(root, text).replace(":", "-").encode()
        link(root + b"/manifests-v2/" + REGISTRY + b"odd/latest", b"../../../../other/" + name)
        assert claims(divide(root))[b"manifests-v2/" + REGISTRY + b"odd/latest"].keep is KeepReason.UNKNOWN

    def test_a_list_of_manifests_uses_what_each_of_them_uses(self, root):
        child = manifest(root, b"weights for a gpu")
        reference = {"mediaType": "x", "digest": blob(root, child), "runner": "mlx"}
        text = json.dumps(
            {"mediaType": "application/vnd.ollama.manifest.list.v2+json", "manifests": [reference]}
        ).encode()
        path = linked_model(root, REGISTRY + b"both/latest", text)
        claim = claims(divide(root))[path]
        assert {named(text), named(child), named(b"weights for a gpu")} < set(claim.paths)
        assert claim.keep is None

    def test_a_list_with_a_manifest_written_out_is_not_clear(self, root):
        child = json.loads(manifest(root, b"weights"))
        text = json.dumps(
            {"mediaType": "application/vnd.ollama.manifest.list.v2+json", "manifests": [child]}
        ).encode()
        path = linked_model(root, REGISTRY + b"inline/latest", text)
        assert claims(divide(root))[path].keep is KeepReason.UNKNOWN


class TestBroken:
    """Neither crash nor vanish; what else is there can be reclaimed."""

    @pytest.mark.parametrize("text", [b"", b"{", b"null", b"[]", b"{}", b'{"layers": 1}', b"\xff" * 50])
    def test_text_that_is_no_manifest_keeps_itself_and_blobs_without_a_model(self, root, text):
        good = model(root, REGISTRY + b"good/latest", b"weights")
        put(root + b"/manifests/" + REGISTRY + b"torn/latest", text)
        blob(root, b"may be its")
        found = claims(divide(root))
        assert found[b"manifests/" + REGISTRY + b"torn/latest"].keep is KeepReason.UNKNOWN
        assert found[b"blobs@unreferenced"].keep is KeepReason.UNKNOWN
        assert found[good].keep is None

    def test_a_torn_manifest_holds_what_it_still_names(self, root):
        whole = manifest(root, b"weights", b"licence")
        put(root + b"/manifests/" + REGISTRY + b"torn/latest", whole[:-30])
        torn = claims(divide(root))[b"manifests/" + REGISTRY + b"torn/latest"]
        assert named(b"weights") in torn.paths

    def test_missing_blobs_make_no_difference_to_the_rest(self, root):
        path = model(root, REGISTRY + b"half/latest", b"weights")
        os.unlink(root + b"/" + named(b"weights"))
        claim = claims(divide(root))[path]
        assert claim.keep is None
        assert named(b"weights") not in claim.paths

    def test_what_lies_at_another_level_is_strange(self, root):
        model(root, REGISTRY + b"a/latest", b"weights")
        put(root + b"/manifests/note.txt")
        put(root + b"/manifests/" + REGISTRY + b"a/sub/deeper")
        put(root + b"/mine/model.gguf")
        found = divide(root)
        assert {each.path for each in found.foreign if not each.known} == {
            b"manifests/note.txt",
            b"manifests/" + REGISTRY + b"a/sub",
            b"mine",
        }
        assert "note.txt" in found.warnings[0]


class TestLeftovers:
    """What no manifest names."""

    def test_a_partial_download_goes_offsets_first_once_it_is_abandoned(self, root):
        model(root, REGISTRY + b"a/latest", b"weights")
        stem = b"blobs/sha256-" + b"e" * 64 + b"-partial"
        for suffix in (b"", b"-0", b"-10", b"-2"):
            put(root + b"/" + stem + suffix, mtime_ns=NOW - DAY - 1)
        (claim,) = [each for each in divide(root).claims if each.partial]
        assert claim.paths == (stem + b"-0", stem + b"-10", stem + b"-2", stem)

    def test_one_fresh_part_keeps_all_of_it(self, root):
        model(root, REGISTRY + b"a/latest", b"weights")
        stem = b"blobs/sha256-" + b"e" * 64 + b"-partial"
        put(root + b"/" + stem)
        put(root + b"/" + stem + b"-0", mtime_ns=NOW - HOUR)
        found = divide(root)
        assert not any(each.partial for each in found.claims)
        assert {stem, stem + b"-0"} <= {each.path for each in found.foreign if each.known}

    def test_a_young_blob_may_be_of_a_model_that_is_being_pulled(self, root):
        model(root, REGISTRY + b"a/latest", b"weights")
        put(root + b"/" + named(b"young"), b"young", mtime_ns=NOW - HOUR)
        put(root + b"/" + named(b"old"), b"old")
        assert claims(divide(root))[b"blobs@unreferenced"].paths == (named(b"old"),)

    def test_without_an_age_for_partials_blobs_wait_a_day(self, root):
        model(root, REGISTRY + b"a/latest", b"weights")
        put(root + b"/" + named(b"young"), b"young", mtime_ns=NOW - HOUR)
        assert b"blobs@unreferenced" not in claims(divide(root, partial_max_idle=None))


def test_images_of_containers_are_no_store(root):
    """`blobs` and `manifests` are names that others have too."""
    put(root + b"/blobs/sha256/" + b"a" * 64)
    put(root + b"/manifests/x.json")
    assert divide(root).layout != "ollama"


def measured(root: bytes, found: Split):
    """The entries by name."""
    with opened(root) as tree:
        return {each.name: each for each in scan(tree.root_fd, found, trash_names=()).entries}


def test_who_lists_the_models_uses_none(root):
    """Manifest, configuration, licence and template are read then; the weights are not."""
    path = model(root, REGISTRY + b"a/latest", b"weights")
    text = json.loads(manifest(root, b"weights"))
    text["layers"].append(
        {"mediaType": "application/vnd.ollama.image.template", "digest": blob(root, b"template"), "size": 1}
    )
    put(root + b"/" + path, json.dumps(text).encode())
    for each in (path, named(b"config of weights"), named(b"template")):
        os.utime(root + b"/" + each, ns=(NOW, LONG_AGO))
    os.utime(root + b"/" + named(b"weights"), ns=(LONG_AGO + DAY, LONG_AGO))
    assert measured(root, divide(root))[path].measure.atime_ns == LONG_AGO + DAY
    os.utime(root + b"/" + named(b"weights"), ns=(NOW - HOUR, LONG_AGO))
    assert measured(root, divide(root))[path].measure.atime_ns == NOW - HOUR


DIGESTS = st.text(HEX, min_size=64, max_size=64).map(lambda text: "sha256:" + text) | st.sampled_from(
    ["../../etc/passwd", "sha256:..", "", "sha256-" + "a" * 63, "/etc/passwd"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | DIGESTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["digest", "layers", "config", "mediaType", "manifests", "from", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
TEXTS = (
    st.binary(max_size=200)
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.just(b"[" * 100_000)
    | st.just(b'{"layers":' + b"9" * 5000 + b"}")
)


@given(TEXTS, st.integers(-(2**62), 2**62))
def test_no_text_crashes_and_what_is_not_understood_counts_as_made_here(text, mtime_ns):
    """A name of a blob is sixty-four digits, whatever the text says."""
    found = parse(text, mtime_ns)
    for each in found.blobs | found.references | found.weights:
        assert len(each) == 64
        assert set(each.decode()) <= set(HEX)
    assert found.weights | found.references <= found.blobs
    assert found.clear or found.created or found.references or b"manifests" in text


@given(
    st.lists(TEXTS, min_size=1, max_size=3),
    st.binary(min_size=1, max_size=60).filter(lambda t: b"\0" not in t),
)
def test_no_manifest_and_no_link_reaches_anything_outside(tmp_path_factory, texts, target):
    """Every path of every claim is a plain one, inside, and there."""
    base = os.fsencode(tmp_path_factory.mktemp("fuzz"))
    root = base + b"/store"
    put(base + b"/outside")
    model(root, REGISTRY + b"good/latest", b"weights")
    for number, text in enumerate(texts):
        put(root + b"/manifests/" + REGISTRY + b"odd/%d" % number, text)
    link(root + b"/manifests-v2/" + REGISTRY + b"odd/link", target)
    for claim in divide(root).claims:
        for path in (*claim.paths, *claim.shared, *claim.husks):
            assert not path.startswith(b"/")
            assert b".." not in path.split(b"/")
            assert os.path.lexists(root + b"/" + path)
        if claim.name.startswith(b"manifests-v2/"):
            assert claim.keep is KeepReason.UNKNOWN
