"""Models go through the server that keeps them, and by hand where none lives."""

import os
import time
from pathlib import Path

import pytest
from tests.daemon.evicting import Cache
from tests.daemon.layout_fixtures import ollama
from tests.daemon.layout_trees import divide
from tests.daemon.ollama_server import serving
from tests.daemon.passes import Field, holding, policy
from tests.ports import free_port

from cachewarden.clock import SystemClock
from cachewarden.evict import Evictor
from cachewarden.evict.served import Served
from cachewarden.holders import Machine
from cachewarden.report import Removed, Spared
from cachewarden_policies.policy import DAY, Amount, Limits
from cachewarden_policies.reasons import KeepReason

LIBRARY = "manifests/registry.ollama.ai/library"


@pytest.fixture
def field(tmp_path):
    """A store of two models that share a licence; everything in it is old."""
    field = Field(tmp_path)
    root = os.fsencode(field.root)
    for name in (b"llama/8b", b"qwen/latest"):
        ollama.model(root, ollama.REGISTRY + name, b"weights of " + name, b"licence")
    age(field.root)
    return field


def age(root: Path, days: int = 40) -> None:
    """Times long ago; files are made by other processes only."""
    for here, _, names in os.walk(root):
        for name in names:
            path = os.path.join(here, name)
            then = os.lstat(path).st_mtime - days * 86400
            if then > 0:
                os.utime(path, (then, then), follow_symlinks=False)


def blobs(field) -> set[str]:
    """The names in `blobs`."""
    return set(os.listdir(field.root / "blobs"))


def named(*texts: bytes) -> set[str]:
    """The names of blobs with these contents."""
    return {ollama.digest(text).replace(":", "-") for text in texts}


def keep_one():
    """A policy under which one of two entries has to go."""
    return policy(limits=Limits(max_entries=1, target_entries=Amount(absolute=1)))


def has(field, name: str) -> bool:
    """Whether a model has its manifest."""
    return os.path.lexists(field.root / LIBRARY / name)


def test_without_a_server_a_model_goes_by_hand_with_what_only_it_uses(field):
    """The licence stays for the other one, and the directories of its name go."""
    report = field.run(policy(evict_all=True, protect=("manifests/registry.ollama.ai/library/qwen/*",)))
    assert [each.entry for each in report.evicted] == [f"{LIBRARY}/llama/8b".encode()]
    assert not (field.root / LIBRARY / "llama").exists()
    config = b"config of weights of qwen/latestlicence"
    assert blobs(field) == named(b"weights of qwen/latest", b"licence", config)


def test_with_a_server_it_goes_through_the_server_which_knows_it_then(field, tmp_path):
    """The real one lists what it remembers: a store that changed under it is listed wrongly."""
    with serving(field.root, tmp_path / "server"):
        report = field.run(keep_one())
    (gone,) = report.evicted
    assert gone.freed_bytes > 0
    assert report.failed == ()
    assert len(blobs(field)) == 3
    assert sum(has(field, name) for name in ("llama/8b", "qwen/latest")) == 1
    assert (tmp_path / "root" / LIBRARY).exists()


def test_a_server_deletes_the_last_user_of_a_layer_with_the_layer(field, tmp_path):
    """Both models in one pass."""
    with serving(field.root, tmp_path / "server"):
        report = field.run(policy(evict_all=True))
    assert len(report.evicted) == 2
    assert blobs(field) == set()


def test_a_name_that_is_a_link_to_its_manifest_goes_through_the_server_too(tmp_path):
    """As newer versions keep them; what it linked to goes with it."""
    field = Field(tmp_path)
    root = os.fsencode(field.root)
    ollama.linked_model(root, ollama.REGISTRY + b"new/latest", ollama.manifest(root, b"weights"))
    age(field.root)
    with serving(field.root, tmp_path / "server"):
        report = field.run(policy(evict_all=True))
    assert [each.entry.rpartition(b"library/")[2] for each in report.evicted] == [b"new/latest"]
    assert blobs(field) == set()
    assert report.evicted[0].freed_bytes == 3 * 4096


def test_the_store_may_lie_inside_of_the_location(tmp_path):
    """`~/.ollama` with its keys beside the models."""
    field = Field(tmp_path)
    ollama.model(os.fsencode(field.root / "models"), ollama.REGISTRY + b"a/latest", b"weights")
    (field.root / "id_ed25519").write_text("secret")
    age(field.root)
    with serving(field.root / "models", tmp_path / "server", LOADED="a:latest"):
        report = field.run(policy(evict_all=True))
        assert [each.reason for each in report.spared] == [KeepReason.IN_USE]
    with serving(field.root / "models", tmp_path / "again"):
        report = field.run(policy(evict_all=True))
    assert [each.entry for each in report.evicted] == [f"models/{LIBRARY}/a/latest".encode()]
    assert os.listdir(field.root / "models/blobs") == []
    assert (field.root / "id_ed25519").read_text() == "secret"


@pytest.mark.parametrize(
    ("mood", "reason"),
    [
        ("refuses", KeepReason.UNKNOWN),
        ("lies", KeepReason.UNKNOWN),
        ("other", KeepReason.UNKNOWN),
        ("nonsense", KeepReason.UNKNOWN),
    ],
)
def test_a_server_that_does_not_do_as_documented_costs_nothing(field, tmp_path, mood, reason):
    """It refuses, it says yes and does nothing, its model is another version, it is no such server."""
    before = blobs(field)
    with serving(field.root, tmp_path / "server", MOOD=mood) as server:
        report = field.run(policy(evict_all=True))
    assert report.evicted == ()
    assert {each.reason for each in report.spared} == {reason}
    assert {holder.pid for each in report.spared for holder in each.holders} == {server.pid}
    assert blobs(field) == before


def test_a_loaded_model_stays_though_its_file_is_closed(field, tmp_path):
    """Its weights may be on the GPU alone."""
    loaded = "registry.ollama.ai/library/llama:8b"
    with serving(field.root, tmp_path / "server", LOADED=loaded):
        report = field.run(policy(evict_all=True))
    assert [each.entry for each in report.evicted] == [f"{LIBRARY}/qwen/latest".encode()]
    assert [each.reason for each in report.spared] == [KeepReason.IN_USE]
    assert has(field, "llama/8b")


def test_a_loaded_model_stays_however_its_name_was_written(field, tmp_path):
    """The server takes names that differ in case for the same."""
    with serving(field.root, tmp_path / "server", LOADED="registry.ollama.ai/library/Llama:8B"):
        report = field.run(policy(evict_all=True))
    assert [each.reason for each in report.spared] == [KeepReason.IN_USE]
    assert has(field, "llama/8b")


def test_a_model_whose_weights_somebody_has_mapped_is_not_asked_for(field, tmp_path):
    """A runner that the server does not list; the kernel knows it."""
    (weights,) = named(b"weights of llama/8b")
    code = "f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); f.close()"
    with serving(field.root, tmp_path / "server"), holding(code, str(field.root / "blobs" / weights)):
        report = field.run(policy(evict_all=True))
    assert [each.reason for each in report.spared] == [KeepReason.IN_USE]
    assert has(field, "llama/8b")


@pytest.mark.parametrize("file", [b"weights", None], ids=["weights", "the manifest"])
def test_a_model_is_looked_at_as_any_victim_before_the_server_is_asked(tmp_path, file):
    """Somebody came since the pass looked around: the server would remove it under him."""
    cache = Cache(tmp_path / "root")
    name = ollama.model(cache.root, ollama.REGISTRY + b"a/latest", b"weights")
    (claim,) = divide(cache.root).claims
    victim = cache.victim(*claim.paths, name=claim.name)
    held = name if file is None else b"blobs/" + ollama.digest(file).replace(":", "-").encode()
    with (
        serving(tmp_path / "root", tmp_path / "server"),
        cache.trash() as trash,
        Evictor(trash, Machine(), now_ns=time.time_ns(), clock=SystemClock()) as evictor,
    ):
        served = Served(evictor, trash.root_fd)
        with holding("f = open(sys.argv[1], 'rb')", os.fsdecode(cache.path(held))):
            (outcome,) = served.evict_all([victim])
        assert isinstance(outcome, Spared)
        assert outcome.reason is KeepReason.IN_USE
        assert cache.has(name)
        assert isinstance(served.evict_all([victim])[0], Removed)
    assert not cache.has(name)


def test_a_server_that_cannot_be_reached_keeps_its_models(field, tmp_path):
    """In another network namespace, or listening where it does not say: another one might answer."""
    with serving(field.root, tmp_path / "server", OLLAMA_HOST="127.0.0.1:9"):
        report = field.run(policy(evict_all=True))
    assert report.evicted == ()
    assert {each.reason for each in report.spared} == {KeepReason.IN_USE}


def test_a_server_on_another_address_is_not_taken_for_the_one_that_answers(field, tmp_path):
    """Of two with the same port, one of them another user's: it may have the same models."""
    (tmp_path / "theirs").mkdir()
    theirs = Field(tmp_path / "theirs")
    for name in (b"llama/8b", b"qwen/latest"):
        ollama.model(os.fsencode(theirs.root), ollama.REGISTRY + name, b"weights of " + name, b"licence")
    port = str(free_port())
    host = f"127.0.0.1:{port}"
    with (
        serving(theirs.root, tmp_path / "server", PORT=port, OLLAMA_HOST=host),
        serving(field.root, tmp_path / "other", PORT=port, OLLAMA_HOST=host, LISTEN="127.0.0.2"),
    ):
        report = field.run(policy(evict_all=True))
    assert {each.reason for each in report.spared} == {KeepReason.IN_USE}
    assert has(theirs, "llama/8b")
    assert has(theirs, "qwen/latest")


def test_a_name_that_no_request_can_carry_waits_until_no_server_lives(tmp_path):
    """Such a file is none of the server's; but its blobs may be."""
    field = Field(tmp_path)
    ollama.model(os.fsencode(field.root), ollama.REGISTRY + b"\xff/latest", b"weights")
    age(field.root)
    with serving(field.root, tmp_path / "server"):
        assert field.run(policy(evict_all=True)).evicted == ()
    assert len(field.run(policy(evict_all=True)).evicted) == 1


def test_blobs_without_a_model_wait_until_no_server_lives(field, tmp_path):
    """It may be about to write their manifest."""
    ollama.blob(os.fsencode(field.root), b"nobody's")
    age(field.root, 30)
    field.clock.advance(400 * DAY)
    rules = policy(evict_all=True, protect=("manifests/**",))
    with serving(field.root, tmp_path / "server"):
        field.run(rules)
        assert named(b"nobody's") <= blobs(field)
    field.run(rules)
    assert not named(b"nobody's") & blobs(field)


def test_a_server_of_another_store_is_none_of_ours(field, tmp_path):
    """It keeps other models, and ours go by hand."""
    other = tmp_path / "other"
    ollama.model(os.fsencode(other), ollama.REGISTRY + b"x/y", b"x")
    with serving(other, tmp_path / "server"):
        report = field.run(policy(evict_all=True))
    assert len(report.evicted) == 2
    assert (other / LIBRARY / "x/y").exists()
