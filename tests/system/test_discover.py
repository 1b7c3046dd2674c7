"""`discover` on machines of its own: namespaces in which /home, /etc/passwd and all processes are ours."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.system.caches import checkpoint, configuration, offload_folder
from tests.system.command import PROGRAM, Run, environment
from tests.system.trees import age, allocated, contents, fill, process, write

from cachewarden.discover.tools import KNOWN

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]

USERS = {"alice": 4001, "bob": 4002, "carol": 4003}
COMMIT = "c" * 40
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
_PRIVATE = ("unshare", "--mount", "--propagation", "private")
_BOOT = 'mount --bind "$1/home" /home; mount --bind "$1/passwd" /etc/passwd; echo ready; exec cat'
_READY = "import sys; print('ready', flush=True); sys.stdin.read()"


@dataclass
class Machine:
    """Homes below `base`, which are /home to the commands that run here; `enter` is before each of them."""

    base: str
    enter: tuple[str, ...]

    def home(self, user: str, *parts: str) -> str:
        """Where something of a user's is for the test."""
        return os.path.join(self.base, "home", user, *parts)

    def hub(self, user: str, below: str = ".cache/huggingface/hub", mebibytes: float = 1) -> str:
        """A hub cache of one model, unused for 90 days."""
        path = self.home(user, below)
        repo = f"{path}/models--o--m"
        fill(f"{repo}/blobs/w", mebibytes)
        os.makedirs(f"{repo}/snapshots/{COMMIT}")
        os.symlink("../../blobs/w", f"{repo}/snapshots/{COMMIT}/w")
        age(path, 90)
        return path

    def give(self) -> None:
        """Everything in a home belongs to its user."""
        for user, uid in USERS.items():
            for directory, names, files in os.walk(self.home(user)):
                for name in (".", *names, *files):
                    os.lchown(os.path.join(directory, name), uid, uid)

    def __call__(self, *arguments: str, uid: int = 0, **environ: str) -> Run:
        """Run a command of ours on this machine, as some user."""
        self.give()
        command = [sys.executable, "-m", "cachewarden"] if uid else [PROGRAM]
        if uid:
            command = ["setpriv", f"--reuid={uid}", "--clear-groups", *command]
        done = subprocess.run(
            [*self.enter, *command, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            cwd="/",
            env={name: value for name, value in environment().items() if name not in KNOWN}
            | {"HOME": "/home/root"}
            | environ,
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def live(self, script: str, *arguments: str) -> contextlib.AbstractContextManager[object]:
        """A process of this machine with mounts of its own, once ready: `bash -ec SCRIPT - ARGUMENTS`."""
        return process([*self.enter, *_PRIVATE, "bash", "-ec", script, "-", *arguments])

    def places(self, *options: str, uid: int = 0, **environ: str) -> dict[str, dict]:
        """What `discover --json` says of places in homes, by path; `options` are global ones."""
        found = self(*options, "discover", "--json", uid=uid, **environ).json
        return {each["path"]: each for each in found["places"] if each["path"].startswith("/home/")}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    base = str(tmp_path / "machine")
    os.makedirs(f"{base}/home/root")
    lines = ["root:x:0:0::/home/root:/bin/bash"]
    for user, uid in USERS.items():
        os.mkdir(f"{base}/home/{user}")
        lines.append(f"{user}:x:{uid}:{uid}::/home/{user}:/bin/bash")
    write(f"{base}/passwd", "\n".join([*lines, ""]))
    alone = ("--fork", "--pid", "--mount-proc", "--kill-child")
    with process([*_PRIVATE, *alone, "bash", "-ec", _BOOT, "-", base]) as first:
        spaces = f"/proc/{first.pid}/ns"
        yield Machine(base, ("nsenter", f"--mount={spaces}/mnt", f"--pid={spaces}/pid_for_children"))


@pytest.fixture
def none(tmp_path: Path) -> list[str]:
    """A configuration with nothing in it, so that this machine's own does not count."""
    path = str(tmp_path / "empty.toml")
    write(path, "")
    return ["--config", path]


def proposed(machine: Machine, none: list[str], tmp_path: Path, **environ: str) -> str:
    """The file that `-o` writes, after `config check` took it: alone, and beside another."""
    file = str(tmp_path / "proposal.toml")
    done = machine(*none, "discover", "-o", file, **environ)
    assert done.status == 0, done.err
    assert "PROPOSED AS" in done.out
    for beside in ([], none):
        checked = machine(*beside, "--config", file, "config", "check")
        assert checked.status == 0, checked.err
        assert "Refused" not in checked.out
    with open(file, encoding="utf-8") as text:
        return text.read()


def test_as_root_the_caches_of_all_users_are_found_and_become_one_glob(machine, none, tmp_path):
    """And `plan` with the proposal says what would go, while a pass takes nothing."""
    for user in ("alice", "bob"):
        machine.hub(user)
    toml = proposed(machine, none, tmp_path)
    assert '[locations.huggingface-hub]\npath = "/home/*/.cache/huggingface/hub"\n' in toml
    assert re.findall("^enforce = (.*)$", toml, re.MULTILINE) == ["false"] * toml.count("[locations.")
    state = str(tmp_path / "state.toml")
    write(state, f'[daemon]\nstate_dir = "{tmp_path}/state"\nruntime_dir = "{tmp_path}/run"\nhttp = ""\n')
    file = str(tmp_path / "proposal.toml")
    before = contents(machine.base)
    done = machine("--config", state, "--config", file, "once", "--json")
    mine = [each for each in done.json["locations"] if each["path"].startswith("/home/")]
    assert [each["path"] for each in mine] == [
        "/home/alice/.cache/huggingface/hub",
        "/home/bob/.cache/huggingface/hub",
    ]
    assert not any(each["evicted"] for each in mine)
    assert contents(machine.base) == before


def test_a_proposal_is_turned_on_by_the_command_that_it_names(machine, none, tmp_path):
    """In that file, whose comments stay."""
    machine.hub("alice")
    file = str(tmp_path / "proposal.toml")
    said = machine(*none, "discover", "-o", file).out
    named = re.search(rf"cachewarden --config {file} enforce (\S+)", said)[1]
    assert named in said.partition("PROPOSED AS")[2]
    assert "huggingface-hub" in said
    before = Path(file).read_text()
    mine = str(tmp_path / "mine.toml")
    write(
        mine,
        f'[daemon]\nstate_dir = "{tmp_path}/state"\nruntime_dir = "{tmp_path}/run"\nhttp = ""\n'
        '[locations.huggingface-hub]\nmax_idle = "1d"\nkeep_newest = 0\nignore_ctime = true\n',
    )
    files = ("--config", mine, "--config", file)
    turned = machine(*files, "enforce", "huggingface-hub", "--yes")
    assert turned.status == 0, turned.err
    at = before.index("enforce = false", before.index("[locations.huggingface-hub]"))
    assert Path(file).read_text() == before[:at] + "enforce = true" + before[at + len("enforce = false") :]
    (planned,) = machine(*files, "plan", "--location", "huggingface-hub", "--json").json["locations"]
    assert [each["entry"] for each in planned["would_evict"]] == ["models--o--m"]


def test_figures_are_those_of_a_pass(machine, none):
    hub = machine.hub("alice", mebibytes=3)
    place = machine.places(*none)["/home/alice/.cache/huggingface/hub"]
    assert place["bytes"] == allocated(hub)
    assert (place["entries"], place["layout"], place["owner"]) == (1, "hub", USERS["alice"])
    assert place["found_by"] == ["default"]
    assert place["kinds"] == [
        {"kind": "repo", "layout": "hub", "entries": 1, "bytes": place["bytes"], "kept": 0, "reasons": []}
    ]


def test_a_glob_that_would_mean_what_nobody_looked_at_is_not_used(machine, none, tmp_path):
    """One user keeps something else at the same place."""
    for user in ("alice", "bob"):
        machine.hub(user)
    fill(machine.home("carol", ".cache/huggingface/hub/thesis.tex"), 1)
    toml = proposed(machine, none, tmp_path)
    assert '    "/home/alice/.cache/huggingface/hub",\n    "/home/bob/.cache/huggingface/hub",\n' in toml
    assert "carol" not in toml
    carols = machine.places(*none)["/home/carol/.cache/huggingface/hub"]
    assert (carols["proposed"], carols["reason"]) == (False, "nothing in it has the shape of a known cache")


def test_a_folder_by_name_is_proposed_by_its_path_and_never_for_everybody(machine, none, tmp_path):
    """Others may keep a project's state, or checkpoints, under that name."""
    for user in ("alice", "bob"):
        offload_folder(machine.home(user, ".accelerate/offload/m"), 1)
        checkpoint(machine.home(user, ".accelerate/checkpoints/checkpoint_0"), 1)
        configuration(machine.home(user, ".accelerate"))
    write(machine.home("carol", "project/.accelerate/state.yaml"), "phase: 1\n")
    toml = proposed(machine, none, tmp_path)
    assert '    "/home/alice/.accelerate",\n    "/home/bob/.accelerate",\n' in toml
    assert "/home/*/.accelerate" not in toml
    assert "carol" not in toml
    told = machine(*none, "discover").out
    inside = told[told.index("/home/alice/.accelerate: a name says nothing") :]
    assert re.search(r"offload \(accelerate\): 1 entry +1 MiB\n", inside)
    assert re.search(r"checkpoint \(accelerate\): 1 entry .* all kept: protected by the layout", inside)
    assert "/home/carol/project/.accelerate: a name says nothing" in told


def test_links_of_users_are_named_and_not_followed(machine, none):
    """Root would measure, and propose, whatever they lead to."""
    machine.hub("alice", "elsewhere/huggingface/hub")
    os.symlink("/home/alice/elsewhere", machine.home("bob", ".cache"))
    found = machine(*none, "discover", "--json")
    assert not [each for each in found.json["places"] if "/home/" in each["path"]]
    reasons = {each["path"]: each["reason"] for each in found.json["not_looked_at"]}
    assert "link that others could change" in reasons["/home/bob/.cache"]


def test_what_a_live_process_uses_is_found_and_its_secrets_are_told_to_nobody(machine, none, tmp_path):
    """By path: of its environment only the variables of tools are read."""
    machine.hub("alice", "data/models")
    secrets = {"HF_TOKEN": "hf_verysecret", "PASSWORD": "verysecret"}
    given = {"HOME": "/home/alice", "HF_HUB_CACHE": "/home/alice/data/models", **secrets}
    words = [f"{name}={value}" for name, value in given.items()]
    python = [sys.executable, "-S", "-E", "-c", _READY]
    with machine.live('exec env -i "$@"', *words, *python):
        for arguments in (["--json"], ["--toml"]):
            done = machine(*none, "discover", *arguments)
            assert "verysecret" not in done.out + done.err
        place = machine.places(*none)["/home/alice/data/models"]
        assert (place["found_by"], place["proposed"]) == (["HF_HUB_CACHE"], True)


def test_a_container_s_directory_is_found_where_it_is_on_this_machine(machine, none, tmp_path):
    """Its path means nothing here; the directory that is mounted there has a name of ours."""
    data, point = str(tmp_path / "data"), str(tmp_path / "c")
    os.mkdir(point)
    fill(f"{data}/models/models--o--m/blobs/w")
    script = f"mount --bind {data} {point}; export HF_HUB_CACHE={point}/models; echo ready; exec cat"
    with machine.live(script):
        found = machine(*none, "discover", "--json").json
    paths = {each["path"]: each["found_by"] for each in found["places"]}
    assert paths[f"{data}/models"] == ["HF_HUB_CACHE"]
    assert f"{point}/models" not in paths


def test_an_ordinary_user_finds_his_own_without_asking_for_anything(machine, none):
    """No root, no --user, no configuration."""
    machine.hub("alice")
    machine.hub("bob")
    places = machine.places(uid=USERS["alice"], HOME="/home/alice")
    assert list(places) == ["/home/alice/.cache/huggingface/hub"]
    assert places["/home/alice/.cache/huggingface/hub"]["proposed"]
    assert os.listdir(machine.home("alice")) == [".cache"]


def test_a_file_that_is_there_is_not_written_over(machine, none, tmp_path):
    """It may be the configuration in force."""
    file = str(tmp_path / "config.toml")
    write(file, "# mine\n")
    done = machine(*none, "discover", "-o", file)
    assert done.status == 2
    assert "is there already" in done.err
    assert contents(tmp_path)[b"config.toml"] == b"# mine\n"


def test_every_field_of_the_json_output_is_on_the_page(machine, none):
    machine.hub("alice")
    found = machine(*none, "discover", "--json").json
    page = PAGE.read_text(encoding="utf-8").split("\n## discover\n")[1].split("\n## ")[0]
    (place,) = [each for each in found["places"] if each["path"].startswith("/home/")]
    for field in (*found, *place, *place["kinds"][0]):
        assert f"`{field}`" in page or f'"{field}"' in page, field
