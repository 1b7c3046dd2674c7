"""The parts of `discover`: what environments mean, which ways are gone, how places become a configuration."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.daemon.layout_trees import put, repository

from cachewarden.clock import SetClock
from cachewarden.discover import Scope, discover
from cachewarden.discover.environments import Environment, candidates
from cachewarden.discover.homes import accounts, homes
from cachewarden.discover.live import Lens, live
from cachewarden.discover.places import Places
from cachewarden.discover.proposal import toml
from cachewarden.discover.reach import Ways
from cachewarden.discover.tools import KNOWN, TOOLS
from cachewarden.mountinfo import parse
from cachewarden.settings import load, territory

NOBODY = 65_534
CLOCK = SetClock(1_900_000_000 * 10**9)


def of(*pairs, home=None):
    return Environment.of([(name.encode(), value.encode()) for name, value in pairs], home)


def paths(environment, via):
    return {each.path for each in candidates(environment) if each.via == via}


def ways(*trusted, network=False):
    return Ways(frozenset(trusted or {0, os.geteuid()}), network)


class TestEnvironments:
    """What a tool would use."""

    def test_without_variables_it_is_the_default_of_the_home(self):
        found = paths(of(("HOME", "/home/a")), "default")
        assert b"/home/a/.cache/huggingface/hub" in found
        assert b"/home/a/.triton/cache" in found
        assert b"/tmp/torchinductor_*" in found

    def test_xdg_cache_home_moves_the_defaults_of_tools_that_honour_it_and_of_no_others(self):
        found = paths(of(("HOME", "/home/a"), ("XDG_CACHE_HOME", "/c")), "default")
        assert b"/c/huggingface/hub" in found
        assert b"/home/a/.cache/flashinfer" in found
        assert b"/c/flashinfer" not in found

    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("HF_HUB_CACHE", "/d/hub", b"/d/hub"),
            ("HF_HOME", "/d/", b"/d/hub"),
            ("HF_HOME", "~/hf", b"/home/a/hf/hub"),
            ("HF_HOME", "$HOME/hf", b"/home/a/hf/hub"),
            ("HF_HOME", "${XDG_CACHE_HOME}/hf", b"/c/hf/hub"),
            ("TRITON_HOME", "//t//x/../y", b"/t/y/.triton/cache"),
            ("TMPDIR", "/scratch", b"/scratch/torchinductor_*"),
        ],
    )
    def test_a_variable_says_where(self, name, value, expected):
        found = paths(of(("HOME", "/home/a"), ("XDG_CACHE_HOME", "/c"), (name, value)), name)
        assert expected in found

    @pytest.mark.parametrize("value", ["", "relative", "~bob/hf", "$SECRET/hf", "/a*b"])
    def test_a_value_that_means_no_certain_path_means_none(self, value):
        assert not paths(of(("HOME", "/home/a"), ("HF_HOME", value), ("SECRET", "/s")), "HF_HOME")

    def test_nothing_but_known_variables_is_kept(self):
        found = of(("HOME", "/home/a"), ("HF_TOKEN", "hf_secret"), ("AWS_SECRET_ACCESS_KEY", "k"))
        assert dict(found.values) == {"HOME": b"/home/a"}
        assert "secret" not in repr(found).lower()

    def test_an_environment_without_a_home_says_nothing(self):
        assert of(("HF_HOME", "/d")) is None

    @given(st.lists(st.tuples(st.sampled_from(sorted(KNOWN)), st.binary(max_size=20))))
    def test_whatever_the_values_paths_are_absolute_and_normalised(self, pairs):
        found = Environment.of([(name.encode(), value) for name, value in pairs], b"/home/a")
        for each in candidates(found):
            assert each.path == os.path.normpath(each.path)
            assert each.path.startswith(b"/")
            assert b"*" not in os.path.dirname(each.path)


def test_every_tool_has_a_name_that_a_location_may_have_and_a_source():
    assert len({tool.name for tool in TOOLS}) == len(TOOLS)
    for tool in TOOLS:
        assert tool.name.replace("-", "").isalnum()
        assert tool.source
        assert tool.variables or tool.defaults


class TestWays:
    """Which directories are looked at."""

    def test_links_of_trusted_users_are_followed_to_the_real_name(self, tmp_path):
        (tmp_path / "real" / "x").mkdir(parents=True)
        (tmp_path / "link").symlink_to("real")
        (tmp_path / "loop").symlink_to("loop")
        found = ways()
        assert found.directory(os.fsencode(tmp_path / "link" / "x")) == os.fsencode(tmp_path / "real" / "x")
        assert found.directory(os.fsencode(tmp_path / "loop" / "x")) is None
        assert found.directory(os.fsencode(tmp_path / "none")) is None

    @pytest.mark.root
    @pytest.mark.parametrize("whose", ["link", "directory"])
    def test_links_that_others_could_change_are_not_followed_and_are_named(self, needs_root, tmp_path, whose):
        base = tmp_path / "home"
        (tmp_path / "target" / "hub").mkdir(parents=True)
        base.mkdir()
        link = base / "cache"
        link.symlink_to(tmp_path / "target")
        if whose == "directory":
            os.chown(base, NOBODY, NOBODY)
        else:
            os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
        found = ways(0)
        assert found.directory(os.fsencode(link / "hub")) is None
        assert "is a link that others could change" in found.notices[os.fsencode(link)].reason

    def test_nothing_on_a_network_mount_is_touched_unless_asked(self, tmp_path):
        """The table alone decides: what it names need not even be there."""
        there = os.fsencode(tmp_path)
        (tmp_path / "x").mkdir()
        table = f"9 1 0:40 / {tmp_path} rw - nfs4 server:/x rw\n".encode()
        root = b"1 0 8:1 / / rw - ext4 /dev/sda rw\n"
        found = Ways(frozenset({0}), False, mounts=parse(root + table))
        assert found.directory(there + b"/x") is None
        assert "nfs4" in found.notices[there].reason
        asked = Ways(frozenset({0, os.geteuid()}), True, mounts=parse(root + table))
        assert asked.directory(there + b"/x") == there + b"/x"


class TestHomes:
    """Whose caches there are."""

    def test_accounts_come_from_the_file_and_broken_lines_from_nowhere(self, tmp_path):
        file = tmp_path / "passwd"
        file.write_bytes(
            b"a:x:1000:1000::/home/a:/bin/sh\n+::::::\nb:x:no:1::/home/b:\n\nc:x:7:7::rel:/\n\xff"
        )
        assert list(accounts(os.fsencode(file))) == [(1000, b"/home/a")]

    @pytest.mark.root
    def test_a_home_belongs_to_its_user_and_neighbours_without_an_account_count(self, needs_root, tmp_path):
        """Accounts of a directory server are not in the file; their homes are on the disk."""
        for name, uid in (("a", 4001), ("b", 4002), ("service", 33), ("theirs", 4001)):
            (tmp_path / name).mkdir()
            os.chown(tmp_path / name, uid, uid)
        file = tmp_path / "passwd"
        file.write_text(f"a:x:4001:1::{tmp_path}/a:\nx:x:4009:1::{tmp_path}/theirs:\ny:x:4010:1::/nowhere:\n")
        found = {each.path: each.uid for each in homes(ways(0), os.fsencode(file))}
        mine = {
            os.path.basename(path): uid for path, uid in found.items() if path.startswith(bytes(tmp_path))
        }
        assert mine == {b"a": 4001, b"b": 4002, b"theirs": 4001}


class TestLive:
    """What processes say."""

    def test_the_environment_of_a_live_process_and_where_it_works(self, tmp_path):
        deep = tmp_path / "project" / "src"
        deep.mkdir(parents=True)
        environ = {"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": "hf_secret"}
        child = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", "print('ready', flush=True); input()"],
            cwd=deep,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            child.stdout.readline()
            found = live(os.geteuid())
        finally:
            child.communicate(b"\n")
        (mine,) = [each for each in found.environments if each.home == os.fsencode(tmp_path)]
        assert dict(mine.values) == {"HOME": os.fsencode(tmp_path), "HF_HOME": os.fsencode(tmp_path / "hf")}
        assert {
            os.fsencode(deep),
            os.fsencode(tmp_path / "project"),
            os.fsencode(tmp_path),
        } <= found.workplaces

    def test_a_path_in_a_container_is_seen_through_its_mounts(self):
        ours = parse(
            b"1 0 8:1 / / rw - ext4 /dev/sda rw\n"
            b"2 1 8:2 / /data rw - xfs /dev/sdb rw\n"
            b"3 2 8:3 / /data/over rw - xfs /dev/sdc rw\n"
            b"4 1 0:50 / /run/containers/1/merged rw - overlay overlay rw,lowerdir=/l\n"
        )
        theirs = parse(
            b"20 10 0:50 / / rw - overlay overlay rw,lowerdir=/l\n"
            b"21 20 8:2 /models /root/.cache/huggingface rw - xfs /dev/sdb rw\n"
            b"22 20 8:2 /over/hidden /hidden rw - xfs /dev/sdb rw\n"
            b"23 20 8:9 / /elsewhere rw - xfs /dev/sdd rw\n"
        )
        lens = Lens(theirs, ours)
        assert lens.here(b"/root/.cache/huggingface/hub") == b"/data/models/hub"
        assert lens.here(b"/root/.triton/cache") is None  # goes with the container
        assert lens.here(b"/hidden/x") is None  # something of ours is mounted over it
        assert lens.here(b"/elsewhere") is None  # we have it nowhere
        assert Lens().here(b"/x") == b"/x"


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
