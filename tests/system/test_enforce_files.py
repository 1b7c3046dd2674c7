"""The files that `cachewarden enforce` edits: in whatever form, whoever owns them, killed at any moment."""

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.command import PROGRAM, Warden, environment, free_port, running
from tests.system.report_only import left, over_its_limit, text
from tests.system.trees import age, fill, loop_mounted, wait_until
from tests.system.users import User, ground

ALICE, BOB = User(50001), User(50002)
UNUSUAL = """\
# What is kept small here \t
daemon = { "state_dir" = '{base}/state', runtime_dir="{base}/run", http = "{http}", interval = "2s" } # one

 [ locations ]   # enforce = false
cache.'path'   =  "{root}"\t# ✓
  cache.max_size = "4MiB"
cache . min_idle = '0s'
cache.max_share="100%"
\tcache.enforce\t=\tfalse\t# a first week

other.path = [ "/nowhere/at/all",
  # enforce = false
  "/nowhere/else" ]"""
# The real command, killed by itself before the Nth of those steps that the interpreter announces (PEP 578).
KILLED = """
import os, signal, sys
left = int(sys.argv.pop(1))
steps = {"tempfile.mkstemp", "os.setxattr", "os.chmod", "os.rename"}
def step(event, arguments):
    global left
    if event in steps:
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(step)
from cachewarden.cli import main
main()
"""


@pytest.fixture
def warden(warden, root) -> Warden:
    """Report only, over its limit."""
    return over_its_limit(warden, root)


def unusual(warden: Warden, root: str, http: str = "") -> str:
    """A configuration as people write it, with line ends of DOS and none at the end."""
    values = {"base": warden.base, "root": root, "http": http}
    written = re.sub(r"\{(base|root|http)\}", lambda match: values[match[1]], UNUSUAL).replace("\n", "\r\n")
    with open(warden.file, "w", encoding="utf-8", newline="") as file:
        file.write(written)
    return written


def test_a_file_of_unusual_form_keeps_every_other_byte(warden, root):
    port = free_port()
    before = unusual(warden, root, f"127.0.0.1:{port}")
    assert not before.endswith("\n")
    os.chmod(warden.file, 0o604)
    with running([PROGRAM, "--config", warden.file], port, f"{warden.base}/log") as service:
        wait_until(lambda: service.passes() >= 1)
        run = warden("enforce", "cache", "--yes")
        assert run.status == 0, run.err
        assert text(warden) == before.replace("\tfalse\t", "\ttrue\t")
        assert stat.S_IMODE(os.stat(warden.file).st_mode) == 0o604
        wait_until(lambda: left(root) == ["e3", "e4", "e5"])
        assert service.stop() == 0


def test_two_files_are_changed_together_and_links_stay_links(warden, root, tmp_path):
    second = tmp_path / "second.toml"
    second.write_text(
        f'[daemon]\nenforce = false\n[locations.more]\npath = "{tmp_path}/more"\nenforce = false\n'
    )
    link = tmp_path / "link.toml"
    link.symlink_to("second.toml")
    run = warden("--config", str(link), "enforce", "cache", "--yes")
    assert run.status == 0, run.err
    assert f"changed {link}:2: daemon.enforce = true (was false)" in run.out
    assert "enforce = true" in text(warden)
    assert link.is_symlink()
    assert second.read_text().count("enforce = false") == 1
    assert warden("--config", str(link), "once", "--location", "cache", "--json").evicted == ["e0", "e1"]


def test_a_broken_file_is_named_with_its_line_and_left_alone(warden, tmp_path):
    second = tmp_path / "second.toml"
    second.write_text("[locations.cache]\nmax_sice = 5\n")
    before = text(warden)
    run = warden("--config", str(second), "enforce", "cache", "--yes")
    assert run.status == 2
    assert (
        f"{second}:2: locations.cache.max_sice = 5: there is no such key; did you mean max_size?" in run.err
    )
    assert text(warden) == before


def test_a_variable_is_not_edited(warden):
    before = text(warden)
    run = warden("enforce", "cache", "--yes", environ={"CACHEWARDEN_LOCATIONS__CACHE__ENFORCE": "false"})
    assert run.status == 2
    assert (
        "CACHEWARDEN_LOCATIONS__CACHE__ENFORCE=false: locations.cache.enforce: is set in the environment"
        in run.err
    )
    assert text(warden) == before


def test_killed_before_any_step_it_leaves_each_file_as_it_was_or_as_it_is_to_be(warden, tmp_path):
    first, second = Path(warden.file), tmp_path / "second.toml"
    second.write_text("[daemon]\nenforce = false\n")
    old = [file.read_text() for file in (first, second)]
    new = [each.replace("enforce = false", "enforce = true") for each in old]
    seen = []
    for steps in range(20):
        for file, content in zip((first, second), old, strict=True):
            file.write_text(content)
            os.setxattr(file, "user.note", b"mine")
        files = ["--config", str(first), "--config", str(second)]
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(steps), *files, "enforce", "cache", "--yes"],
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
        )
        now = [file.read_text() for file in (first, second)]
        assert all(each in pair for each, pair in zip(now, zip(old, new, strict=True), strict=True))
        seen.append([each in new for each in now])
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    # Never the key above before the location's own: nothing else may begin to go.
    assert [each for number, each in enumerate(seen) if each not in seen[:number]] == [
        [False, False],
        [True, False],
        [True, True],
    ]
    assert done.returncode == 0
    assert steps == 8  # in each file: made, attributes, mode; and then each renamed


@pytest.fixture
def home(needs_root):
    """The home of an ordinary user, with a cache over its limit that only reports."""
    with ground() as base:
        for user in (ALICE, BOB):
            os.mkdir(f"{base}/{user.uid}")
            os.chown(f"{base}/{user.uid}", user.uid, user.uid)
        home = f"{base}/{ALICE.uid}"
        for number in range(4):
            fill(f"{home}/.accelerate/e{number}/f", 1)
            age(f"{home}/.accelerate/e{number}", 40 - number)
        os.makedirs(f"{home}/.config/cachewarden")
        file = Path(f"{home}/.config/cachewarden/config.toml")
        file.write_text(
            f'[daemon]\nhttp = "127.0.0.1:{free_port()}"\ninterval = "2s"\n'
            '[locations.mine]\npath = "~/.accelerate"\n'
            'layout = "plain"\nmax_size = "2MiB"\nmin_idle = "0s"\nmax_share = "100%"\ntarget_size = "100%"\n'
            "enforce = false # for now\n"
        )
        subprocess.run(["chown", "-R", f"{ALICE.uid}:{ALICE.uid}", home], check=True)
        yield home


def alice(home: str) -> User:
    return User(
        ALICE.uid, environ={"HOME": home, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "XDG_RUNTIME_DIR": ""}
    )


def test_a_user_turns_on_what_is_his_own_under_his_own_service(home):
    user = alice(home)
    file = Path(home, ".config/cachewarden/config.toml")
    before = file.read_text()
    port = int(re.search(r":(\d+)", before)[1])
    command = [
        *user.prefix,
        "env",
        *(f"{name}={value}" for name, value in user.environ.items()),
        PROGRAM,
        "--user",
    ]
    with running(command, port, f"{home}.log") as service:
        wait_until(lambda: service.passes() >= 1)
        assert len(left(f"{home}/.accelerate")) == 4
        done = user.command("--user", "enforce", "mine", "--yes")
        assert done.returncode == 0, done.stderr
        assert "has read it: mine: enforced from now on." in done.stdout
        wait_until(lambda: left(f"{home}/.accelerate") == ["e2", "e3"])
    assert file.read_text() == before.replace("false # for now", "true # for now")
    found = file.stat()
    assert (found.st_uid, found.st_gid) == (ALICE.uid, ALICE.uid)


def test_without_root_the_systems_configuration_is_not_for_users(home):
    done = alice(home).command("enforce", "mine", "--yes")
    assert done.returncode == 2
    assert "this needs root" in done.stderr


def test_a_file_whose_owner_could_not_be_kept_is_left_alone(home):
    file = Path(home, ".config/cachewarden/config.toml")
    os.chown(file, BOB.uid, BOB.uid)
    before = file.read_text()
    done = alice(home).command("--user", "enforce", "mine", "--yes")
    assert done.returncode == 2
    assert f"{file}: cannot be changed: Operation not permitted" in done.stderr
    assert "nothing was changed" in done.stderr
    assert file.read_text() == before
    assert os.listdir(file.parent) == ["config.toml"]


def test_in_a_directory_that_cannot_be_written_nothing_is_changed(home):
    file = Path(home, ".config/cachewarden/config.toml")
    os.chown(file.parent, 0, 0)
    before = file.read_text()
    done = alice(home).command("--user", "enforce", "mine", "--yes")
    assert done.returncode == 2
    assert f"{file}: cannot be changed: Permission denied" in done.stderr
    assert file.read_text() == before


def test_an_immutable_file_is_left_alone(needs_root, warden, tmp_path):
    with loop_mounted(str(tmp_path / "image"), str(tmp_path / "etc")):
        file = tmp_path / "etc" / "c.toml"
        file.write_text(text(warden))
        subprocess.run(["chattr", "+i", file], check=True)
        run = warden("--config", str(file), "enforce", "cache", "--yes")
        subprocess.run(["chattr", "-i", file], check=True)
        assert run.status == 2
        assert f"{file}: cannot be changed: Operation not permitted" in run.err
        assert file.read_text() == text(warden)
        assert sorted(os.listdir(file.parent)) == ["c.toml", "lost+found"]
