"""Real datasets of Hugging Face on a whole `$HF_HOME`: prepare, map, evict, load again."""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.system.client_packages import installed
from tests.system.hub_client import client_environment
from tests.system.hub_endpoint import Hub
from tests.system.trees import age, write

PROGRAM = os.path.join(os.path.dirname(__file__), "datasets_program.py")


class Datasets:
    """Starts programs that use the cache `home`; their source files lie in `sources`."""

    def __init__(self, home: str, sources: str) -> None:
        self.home = home
        self.sources = sources
        self.environ = {"HF_HUB_OFFLINE": "1"}
        os.makedirs(sources)

    @contextlib.contextmanager
    def running(self, *tasks: str) -> Iterator[subprocess.Popen[str]]:
        """A program that does these tasks; killed by its pid when the block ends and it has not ended."""
        environ = client_environment("http://127.0.0.1:9", self.home) | {"HF_HOME": self.home}
        del environ["HF_HUB_CACHE"]
        child = subprocess.Popen(
            [sys.executable, "-S", PROGRAM, self.sources, *tasks],
            env={**environ, "PYTHONPATH": installed("datasets"), **self.environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()
                child.communicate()

    def run(self, *tasks: str) -> list[dict]:
        """What each task says. Raises AssertionError with the program's own words when it failed."""
        with self.running(*tasks) as child:
            return said(child)


def said(child: subprocess.Popen[str]) -> list[dict]:
    """What a program says until its end."""
    out, err = child.communicate(timeout=200)
    assert child.returncode == 0, err
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


@pytest.fixture
def program(root, tmp_path) -> Datasets:
    return Datasets(root, str(tmp_path / "sources"))


def _names(warden, kind: str) -> set[str]:
    """Names of the entries below the datasets cache with this in their path."""
    warden.write()
    return {name for name in warden.entries() if kind in name}


def _results(mapped: dict) -> list[str]:
    """Of the files of mapped datasets those that `map` wrote: a filtered one has the original's, too."""
    return [path for path in mapped["files"] if "/cache-" in path]


def test_all_goes_but_what_nobody_can_make_again_and_comes_back_the_same(program, warden, root):
    """Prepared from files and mapped: made again. From a generator, or saved by hand: stays."""
    write(f"{root}/token", "hf_secret")
    before = program.run("load", "map", "generate", "save")
    mapped = {os.path.basename(path).partition("_0000")[0] for path in _results(before[1])}
    assert len(mapped) == 3
    warden.policy |= {"evict_all": True}
    done = warden.once()
    datasets = {"/".join(name.split("/")[:2]) for name in done.evicted}
    assert datasets == {"datasets/json", "datasets/csv"}
    assert len(done.evicted) == 2 + len(mapped)
    assert set(done.kept.values()) == {"protected"}
    assert {name.split("/")[1] for name in done.kept} == {"generator", "mine"}
    assert os.path.exists(f"{root}/token")
    assert not [path for each in before[:2] for path in each["files"] if os.path.exists(path)]
    after = program.run("load", "map", "generate")
    assert after == before[:3]
    assert warden.once().only["warnings"] == done.only["warnings"] == []


def test_what_one_map_wrote_goes_by_itself_and_is_computed_again(program, warden):
    """Of two processes, both files; the dataset and the other results stay where they are."""
    loaded, mapped = program.run("load", "map")
    rank = next(path for path in mapped["files"] if "_00000_of_00002" in path)
    other = rank.replace("_00000_of_", "_00001_of_")
    warden.write()
    assert warden("evict", rank).status == 0
    assert not os.path.exists(rank)
    assert not os.path.exists(other)
    left = {path for path in (*loaded["files"], *mapped["files"]) if os.path.exists(path)}
    assert left == {*loaded["files"], *mapped["files"]} - {rank, other}
    assert program.run("load", "map") == [loaded, mapped]
    assert os.path.exists(other)


def test_a_prepared_dataset_goes_whole_and_its_results_follow(program, warden):
    """Without its description it is prepared anew; what was mapped from it is of no use to anybody."""
    loaded, mapped = program.run("load", "map")
    directory = os.path.dirname(loaded["files"][0])
    warden.write()
    assert warden("evict", directory).status == 0
    assert not os.path.exists(loaded["files"][0])
    assert not os.path.exists(f"{directory}/dataset_info.json")
    assert all(map(os.path.exists, _results(mapped)))
    warden.policy |= {"max_size": "1GiB"}
    assert {each["reason"] for each in warden.once().only["evicted"]} == {"stale"}
    assert not os.path.exists(directory)
    assert program.run("load", "map") == [loaded, mapped]


def test_what_a_program_has_mapped_stays_until_it_ends(program, warden, root):
    """Arrow files are mapped and closed: no descriptor shows it."""
    with program.running("hold") as child:
        assert child.stdout is not None
        first = json.loads(child.stdout.readline())
        warden.policy |= {"evict_all": True}
        done = warden.once()
        assert all(map(os.path.exists, first["files"]))
        assert not done.evicted
        assert set(done.kept.values()) <= {"in_use", "live_opener"}
        (second,) = said(child)
        assert second == first
    warden.once()
    assert not any(map(os.path.exists, first["files"]))


def test_a_preparation_under_way_holds_its_lock_and_its_half_of_the_files(program, warden, root):
    """However old they look: the builder's lock says that it lives."""
    with program.running("slow") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "{}\n"
        (half,) = [
            os.path.join(here, name)
            for here, below, _ in os.walk(f"{root}/datasets")
            for name in below
            if name.endswith(".incomplete")
        ]
        age(half, 30)
        warden.policy |= {"evict_all": True, "partial_max_idle": "1h"}
        done = warden.once()
        assert set(done.kept.values()) <= {"locked", "in_use", "live_opener"}
        assert not done.evicted
        (found,) = said(child)
        assert os.path.exists(found["files"][0])


def test_a_dead_preparation_is_an_abandoned_partial_and_goes_for_its_age_alone(program, warden, root):
    """Killed in the middle, nobody goes on with it. A lock that somebody holds all the same keeps it."""
    with program.running("slow") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "{}\n"
    (lock,) = [
        os.path.join(here, name)
        for here, _, names in os.walk(f"{root}/datasets")
        for name in names
        if name.endswith("_builder.lock")
    ]
    half = lock.removesuffix("_builder.lock") + ".incomplete"
    age(half, 30)
    warden.policy |= {"max_size": "1GiB", "partial_max_idle": "1h"}
    with open(lock, "rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert set(warden.once().kept.values()) == {"locked"}
    done = warden.once()
    assert [each["reason"] for each in done.only["evicted"]] == ["partial"]
    assert not os.path.exists(half)
    (again,) = program.run("generate")
    assert os.path.exists(again["files"][0])


def test_a_dataset_of_the_hub_is_computed_again_while_its_repository_is_here(program, warden, root):
    """The cost is conditional: with the repository, Arrow goes first and comes back without the network."""
    rows = "".join(json.dumps({"n": n}) + "\n" for n in range(2000)).encode()
    with Hub() as hub:
        hub.commit("org/data", {"data/train.jsonl": rows, "README.md": b"# data\n"}, kind="dataset")
        program.environ = {"HF_ENDPOINT": hub.url}
        (first,) = program.run("hub")
        (name,) = _names(warden, "org___data")
        assert warden.entries()[name]["cost"] == "rebuild"
        assert warden("evict", f"{root}/{name}").status == 0
        served = len([path for path in hub.served if path.endswith(".jsonl")])
        assert program.run("hub") == [first]
        assert len([path for path in hub.served if path.endswith(".jsonl")]) == served
        assert warden("evict", f"{root}/hub/datasets--org--data").status == 0
        assert warden.entries()[name]["cost"] == "download"
        assert program.run("hub") == [first]
