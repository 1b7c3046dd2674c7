"""Which servers an Ollama store has, where they are asked, and what is made of their answers."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.daemon.layout_fixtures import ollama
from tests.daemon.ollama_server import serving

from cachewarden.evict.served.api import ServerError, full_name, listed
from cachewarden.evict.served.servers import parse_host, servers_of


@pytest.fixture
def field(tmp_path):
    """A store with one model, at `root`."""
    root = tmp_path / "root"
    ollama.model(os.fsencode(root), ollama.REGISTRY + b"llama/8b", b"weights")
    return root


def found_servers(root: Path):
    """The servers of a store."""
    fd = os.open(root, os.O_RDONLY)
    try:
        return servers_of(fd)
    finally:
        os.close(fd)


class TestServers:
    """Who counts as a server of a store."""

    def test_only_the_command_that_serves(self, field, tmp_path):
        (tmp_path / "run").write_text("import time; print('up', flush=True); time.sleep(60)")
        environment = {"OLLAMA_MODELS": str(field)}
        child = subprocess.Popen(
            ["ollama", "run"],
            executable=sys.executable,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
        )
        try:
            child.stdout.readline()
            assert found_servers(field).found == ()
        finally:
            child.kill()
            child.wait()
            child.stdout.close()

    def test_the_default_directory_is_in_the_home_of_the_process(self, tmp_path):
        store = tmp_path / "home/.ollama/models"
        ollama.model(os.fsencode(store), ollama.REGISTRY + b"x/y", b"x")
        with serving(store, tmp_path / "server", OLLAMA_MODELS="", HOME=str(tmp_path / "home")) as server:
            (found,) = found_servers(store).found
        assert found.pid == server.pid
        assert found.address is not None

    def test_a_directory_is_looked_up_from_where_the_process_stands(self, field, tmp_path):
        with serving(field, tmp_path / "server", OLLAMA_MODELS="../root") as server:
            assert [each.pid for each in found_servers(field).found] == [server.pid]

    def test_one_that_cannot_be_looked_at_makes_it_unknown(self, needs_root, field, tmp_path):
        with serving(field, tmp_path / "server"):
            fd = os.open(field, os.O_RDONLY)
            child = os.fork()
            if child == 0:
                try:
                    os.setgroups([])
                    os.setresgid(65534, 65534, 65534)
                    os.setresuid(65534, 65534, 65534)
                    os._exit(0 if not servers_of(fd).complete else 1)
                finally:
                    os._exit(2)
            os.close(fd)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    @pytest.mark.parametrize(("mode", "servers"), [(0o755, 0), (0o775, 1)])
    def test_somebody_who_cannot_write_to_the_store_is_no_server_of_it(
        self, needs_root, field, tmp_path, mode, servers
    ):
        """He could only pretend to be one, to keep everything."""
        field.chmod(mode)
        (tmp_path / "serve").write_text("echo up; sleep 60")
        for each in (tmp_path, *tmp_path.parents):
            if str(each).startswith("/tmp/"):
                each.chmod(0o755)
        child = subprocess.Popen(
            ["ollama", "serve"],
            executable="/bin/sh",
            cwd=tmp_path,
            env={"OLLAMA_MODELS": str(field)},
            user=54_321,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            assert child.stdout.readline() == b"up\n"
            assert len(found_servers(field).found) == servers
        finally:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            child.stdout.close()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (b"", ("127.0.0.1", 11434)),
        (b"0.0.0.0", ("127.0.0.1", 11434)),
        (b"0.0.0.0:8080", ("127.0.0.1", 8080)),
        (b"http://localhost:8080/", ("127.0.0.1", 8080)),
        (b"127.0.0.2", ("127.0.0.2", 11434)),
        (b"[::1]:1234", ("::1", 1234)),
        (b"[::]:1234", ("::1", 1234)),
        (b"::1", ("::1", 11434)),
        (b":9000", ("127.0.0.1", 9000)),
        (b"example.org:80", None),
        (b"192.168.0.7:11434", None),
        (b"localhost:99999", None),
        (b"localhost:x", None),
    ],
)
def test_addresses_are_read_as_ollama_reads_them_and_only_this_machine_is_asked(text, address):
    """No name is looked up, nothing is sent to anywhere else."""
    assert parse_host(text) == address


@given(st.binary(max_size=40))
def test_no_address_crashes_and_none_leads_away(text):
    """Whatever somebody's environment holds."""
    found = parse_host(text)
    assert found is None or (found[0] == "::1" or found[0].startswith("127."))


@pytest.mark.parametrize(
    ("shown", "full"),
    [
        ("llama3", "registry.ollama.ai/library/llama3:latest"),
        ("llama3:8b", "registry.ollama.ai/library/llama3:8b"),
        ("me/mine:v1", "registry.ollama.ai/me/mine:v1"),
        ("hf.co/o/r:Q4_K_M", "hf.co/o/r:Q4_K_M"),
        ("localhost:5000/o/r", "localhost:5000/o/r:latest"),
    ],
)
def test_names_are_made_whole_again(shown, full):
    """As they are paths of manifests."""
    assert full_name(shown) == full


ANSWERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["models", "name", "model", "digest"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    st.binary(max_size=80) | ANSWERS.map(lambda value: json.dumps(value).encode()) | st.just(b"[" * 100_000)
)
def test_no_answer_crashes(text):
    """A list of names, or a server that makes no sense."""
    with suppress(ServerError):
        assert all(name.count("/") >= 2 and ":" in name for name, _ in listed(text))
