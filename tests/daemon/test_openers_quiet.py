"""Who only lists what is there is no user: of a model, opening its weights counts, and nothing else."""

import os

import pytest
from tests.daemon.layout_fixtures import ollama
from tests.daemon.layout_trees import divide
from tests.daemon.opening import OPEN_AND_CLOSE, Program, feeding

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]


def blob(store, text):
    """The path of the blob with this content."""
    return store / "blobs" / ollama.digest(text).replace(":", "-")


@pytest.fixture
def store(tmp_path):
    """Two models that share weights, and each with some of its own."""
    root = tmp_path / "store"
    root.mkdir()
    for name in (b"a/latest", b"b/latest"):
        ollama.model(os.fsencode(root), ollama.REGISTRY + name, b"weights of " + name, b"shared weights")
    return root


@pytest.fixture
def site(store):
    with feeding(store) as made:
        made.index(divide(os.fsencode(store)))
        yield made


def manifest(name):
    """The path of a model's manifest, which is its entry's name."""
    return f"manifests/registry.ollama.ai/library/{name}/latest"


def test_reading_manifests_and_configurations_holds_nothing_and_is_no_use(site, store):
    read = [store / manifest(name) for name in "ab"]
    read += [blob(store, b"config of weights of a/latestshared weights")]
    with Program(OPEN_AND_CLOSE, *read):
        assert site.held() == set()
        assert site.feed.recent(site.key) == {}


def test_opening_weights_holds_the_model_that_has_them(site, store):
    with Program(OPEN_AND_CLOSE, blob(store, b"weights of a/latest")) as server:
        assert site.held() == {manifest("a")}
        assert site.pids(manifest("a")) == {server.pid}


def test_opening_shared_weights_holds_every_model_that_has_them(site, store):
    with Program(OPEN_AND_CLOSE, blob(store, b"shared weights")):
        assert site.held() == {manifest("a"), manifest("b")}
