"""What `discover` proposes of the caches in a home, and what it only shows."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.daemon.layout_trees import put, repository

from cachewarden.clock import SetClock
from cachewarden.discover import Scope, discover
from cachewarden.discover.environments import Environment, candidates
from cachewarden.discover.live import live
from cachewarden.discover.places import Places
from cachewarden.discover.proposal import toml
from cachewarden.discover.reach import Ways
from cachewarden.settings import load, territory

CLOCK = SetClock(1_900_000_000 * 10**9)


def ways():
    return Ways(frozenset({0, os.geteuid()}), network=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


def found_in(home, *, network=False, config="", **more):
    """What a user with this home, and nothing else, would be told of it."""
    file = home.parent / "config.toml"
    file.write_text(config)
    environ = {"HOME": str(home), **more}
    settings = load([os.fsencode(file)], environ=environ, user=True)
    encoded = {name.encode(): value.encode() for name, value in environ.items()}
    return discover(settings, Scope(False, network), encoded, CLOCK)


def mine(found, home):
    """Its places below a home, by what follows; live processes of others may have places of their own."""
    base = os.fsencode(home) + b"/"
    return {each.path[len(base) :]: each for each in found.places if each.path.startswith(base)}


class TestPlaces:
    """What is proposed, and what is only shown."""

    def test_a_hub_cache_is_proposed_once_however_many_tools_use_it(self, home):
        hub = os.fsencode(home) + b"/.cache/huggingface/hub"
        repository(hub)
        found = mine(found_in(home, LLAMA_CACHE=os.fsdecode(hub), HF_HUB_CACHE=os.fsdecode(hub)), home)
        place = found[b".cache/huggingface/hub"]
        assert place.location == "huggingface-hub"
        assert set(place.tools) == {"huggingface-hub", "llama-cpp"}
        assert set(place.via) == {"default", "HF_HUB_CACHE", "LLAMA_CACHE"}
        assert (place.layout, place.entries, place.reason) == ("hub", 1, None)

    def test_what_lies_in_a_place_that_is_proposed_goes_with_it(self, home):
        """The configuration refuses overlapping locations."""
        hub = os.fsencode(home) + b"/hub"
        repository(hub)
        put(hub + b"/whisper/base.pt")
        found = mine(found_in(home, HF_HUB_CACHE=os.fsdecode(hub), XDG_CACHE_HOME=os.fsdecode(hub)), home)
        assert list(found) == [b"hub"]
        assert "whisper" in found[b"hub"].tools

    def test_a_directory_of_anything_is_not_proposed_and_what_is_in_it_is(self, home):
        """`LLAMA_CACHE=/data`, with a hub cache somewhere below."""
        repository(os.fsencode(home) + b"/data/hub")
        put(os.fsencode(home) + b"/data/thesis.tex")
        answer = found_in(home, LLAMA_CACHE=f"{home}/data", HF_HOME=f"{home}/data")
        assert {path: each.location for path, each in mine(answer, home).items()} == {
            b"data/hub": "huggingface-hub"
        }
        (notice,) = [each for each in answer.notices if each.path == os.fsencode(home) + b"/data"]
        assert "there is more in it than known caches" in notice.reason

    def test_unknown_contents_are_measured_and_not_proposed(self, home):
        put(os.fsencode(home) + b"/jax/anything", b"x" * 9000)
        place = mine(found_in(home, JAX_COMPILATION_CACHE_DIR=f"{home}/jax"), home)[b"jax"]
        assert place.bytes >= 9000
        assert (place.location, place.reason) == (None, "nothing in it has the shape of a known cache")
        assert place.would_free_bytes is None

    def test_a_tool_that_keeps_independent_files_needs_no_layout(self, home):
        put(os.fsencode(home) + b"/.cache/whisper/base.pt")
        assert mine(found_in(home), home)[b".cache/whisper"].location == "whisper"

    def test_an_empty_cache_is_not_proposed(self, home):
        (home / ".cache" / "whisper").mkdir(parents=True)
        assert mine(found_in(home), home)[b".cache/whisper"].reason == "there is nothing in it that may go"

    def test_the_home_itself_is_never_a_place(self, home):
        repository(os.fsencode(home))
        answer = found_in(home, HF_HUB_CACHE=str(home))
        assert mine(answer, home) == {}
        (notice,) = [each for each in answer.notices if each.path == os.fsencode(home)]
        assert "is a home directory itself" in notice.reason

    def test_what_is_configured_is_shown_under_its_policy_and_not_proposed_again(self, home):
        for name in (b"models--o--m", b"models--o--n"):
            repository(os.fsencode(home) + b"/hub", name)
        config = f'[locations.mine]\npath = "{home}/hub"\nmax_size = 1\nmin_idle = "0s"\n'
        answer = found_in(home, config=config, HF_HUB_CACHE=f"{home}/hub")
        place = mine(answer, home)[b"hub"]
        assert (place.location, place.configured, place.reason) == ("mine", True, None)
        assert place.would_free_bytes == place.bytes
        assert f"{home}/hub" not in answer.toml

    def test_what_has_a_configured_location_in_it_is_not_proposed(self, home):
        repository(os.fsencode(home) + b"/hub")
        config = f'[locations.mine]\npath = "{home}/hub/models--o--m"\nmax_size = 1\n'
        place = mine(found_in(home, config=config, HF_HUB_CACHE=f"{home}/hub"), home)[b"hub"]
        assert place.location is None
        assert "location mine lies in it" in place.reason

    def test_what_the_preset_would_free_is_what_nobody_used_for_two_months(self, home):
        """The newest stays (`keep_newest = 1`); all of it is far older than that."""
        for name in (b"models--o--a", b"models--o--b", b"models--o--c"):
            repository(os.fsencode(home) + b"/hub", name)
        place = mine(found_in(home, HF_HUB_CACHE=f"{home}/hub"), home)[b"hub"]
        assert place.would_free_bytes == place.bytes * 2 // 3

    def test_nothing_is_made_or_changed_and_no_access_time_moves(self, home):
        repository(os.fsencode(home) + b"/.cache/huggingface/hub")
        put(os.fsencode(home) + b"/.accelerate/x/index.json", b"{}")
        put(os.fsencode(home) + b"/.accelerate/x/w.dat")
        below = _below(home)
        for path in below:
            os.utime(path, (0, 0))  # relatime moves an access time that is older than the last change
        before = [_stamps(path) for path in below]
        found_in(home)
        assert [_stamps(path) for path in below] == before
        assert _below(home) == below


def _below(home):
    """Everything in a home but links, whose access time moves with each look (readlink(2))."""
    found = [os.path.join(at, name) for at, names, files in os.walk(home) for name in (*names, *files)]
    return [str(home), *(path for path in found if not os.path.islink(path))]


def _stamps(path):
    found = os.lstat(path)
    return found.st_mode, found.st_uid, found.st_mtime_ns, found.st_atime_ns


class TestFolders:
    """A name alone is no cache."""

    @pytest.mark.parametrize("where", ["", "project/"])
    def test_one_with_a_recognised_cache_is_proposed_by_its_path(self, home, where):
        base = os.fsencode(f"{home}/{where}") + b".accelerate"
        put(base + b"/offload/m/index.json", b"{}")
        put(base + b"/offload/m/w.dat")
        put(base + b"/checkpoints/checkpoint_0/optimizer.bin")
        answer = found_in(home)
        place = mine(answer, home)[os.fsencode(where) + b".accelerate"]
        assert (place.location, place.by_name) == ("accelerate", True)
        kinds = {each.kind: (each.entries, each.kept) for each in place.kinds}
        assert kinds == {"offload": (1, 0), "checkpoint": (1, 1)}
        assert f'path = "{home}/{where}.accelerate"' in answer.toml

    @pytest.mark.parametrize(
        "names",
        [
            ["state.yaml", "planning/notes.md"],
            ["config.yaml"],
            ["optimizer.bin", "random_states_0.pkl", "model.safetensors"],
            ["download-1.part", "queue/x"],
            ["a.arrow", "index.json"],
        ],
        ids=["project", "configuration", "checkpoint", "scratch", "loose files"],
    )
    def test_one_with_anything_else_is_shown_and_not_proposed(self, home, names):
        for name in names:
            put(os.fsencode(f"{home}/.accelerate/{name}"))
        answer = found_in(home)
        place = mine(answer, home)[b".accelerate"]
        assert place.location is None
        assert place.kinds
        assert f"{home}/.accelerate" not in answer.toml

    def test_one_above_where_a_process_works_is_found(self, tmp_path, home):
        work = tmp_path / "work" / "deep" / "er"
        work.mkdir(parents=True)
        put(os.fsencode(tmp_path / "work") + b"/.accelerate/x/index.json", b"{}")
        put(os.fsencode(tmp_path / "work") + b"/.accelerate/x/w.dat")
        places = Places(ways())
        places.of_processes(_process_in(work))
        assert os.fsencode(tmp_path / "work" / ".accelerate") in places.by_path


def _process_in(directory):
    child = subprocess.Popen(["sleep", "60"], cwd=directory)
    try:
        return live(os.geteuid())
    finally:
        child.kill()
        child.wait()


def test_odd_names_survive_the_way_into_the_configuration_and_back(home):
    """Blanks, quotes, stars, brackets, bytes that are no UTF-8, line ends."""
    names = [b"a b", b'q"uo\\te', b"st*r", b"br[ack]et", b"wh?t", b"\xff\xfe", b"line\nend", "é".encode()]
    for name in names:
        repository(os.fsencode(home) + b"/" + name + b"/hub")
    places = Places(ways())
    found = []
    for name in names:
        environ = {b"HOME": os.fsencode(home), b"HF_HUB_CACHE": os.fsencode(home) + b"/" + name + b"/hub"}
        settings = load([], environ={"HOME": str(home)}, user=True)
        answer = discover(settings, Scope(False), environ, CLOCK)
        found += [each for each in answer.places if each.path.startswith(os.fsencode(home) + b"/")]
    stars = [name for name in names if b"*" in name]  # no variable with a star is believed
    assert len(found) == len(names) - len(stars)
    file = home.parent / "proposal.toml"
    file.write_text(toml({"hub": found}, "p", "preset:workstation", [], places.ways), encoding="utf-8")
    land = territory(load([os.fsencode(file)], environ={"HOME": str(home)}, user=True))
    assert {each.path for each in land.locations} == {each.path for each in found}
    assert not land.missing
    assert not land.refused


def test_values_that_name_each_other_ask_for_no_more_than_a_path():
    """Whoever runs a process decides what its environment says."""
    long = b"/" + b"a" * 100_000
    for pairs in (
        [(b"HOME", b"/home/x"), (b"HF_HOME", long), (b"XDG_CACHE_HOME", b"/" + b"$HF_HOME" * 500)],
        [(b"HOME", b"/home/x"), (b"HF_HOME", long[:4000]), (b"XDG_CACHE_HOME", b"/" + b"$HF_HOME" * 500)],
        [(b"HOME", b"/home/x"), (b"HF_HOME", b"~" + long)],
    ):
        environment = Environment.of(pairs)
        assert environment is not None
        assert all(len(each.path) < 5000 for each in candidates(environment))
