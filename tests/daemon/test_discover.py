"""The parts of `discover`: what environments mean, which ways are gone, what processes say."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewarden.discover.environments import Environment, candidates
from cachewarden.discover.homes import accounts, homes
from cachewarden.discover.live import Lens, live
from cachewarden.discover.reach import Ways
from cachewarden.discover.tools import KNOWN, TOOLS
from cachewarden.mountinfo import parse

NOBODY = 65_534


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
