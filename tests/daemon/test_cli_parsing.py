"""What people may type, and how a command ends when something is wrong."""

import json
import os
import stat
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from cachewarden import __version__
from cachewarden.cli.app import app
from cachewarden.cli.complete import location_names
from cachewarden.cli.entry import bug_report
from cachewarden.cli.face import status_of
from cachewarden.cli.files import read_plan, write_plan
from cachewarden.cli.guard import told
from cachewarden.cli.options import entry_path
from cachewarden.errors import (
    ConfigurationError,
    LedgerTooNewError,
    LocationLockedError,
    LocationUnavailableError,
    NoServiceError,
    UsageError,
)
from cachewarden_policies.reasons import Outcome


@pytest.fixture
def configured(tmp_path):
    """Options for a configuration with one location, `cache`, that has one entry."""
    os.makedirs(tmp_path / "cache" / "entry")
    file = tmp_path / "c.toml"
    file.write_text(
        f'[daemon]\nstate_dir = "{tmp_path}/state"\nruntime_dir = "{tmp_path}/run"\nhttp = ""\n'
        f'[locations.cache]\npath = "{tmp_path}/cache"\n[locations.cage]\npath = "{tmp_path}/cage"\n'
    )
    return ["--config", str(file)]


def run(*arguments: str):
    """A command in this process."""
    return CliRunner().invoke(app, list(arguments), prog_name="cachewarden")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("once", "--wait", "10"), ("--wait", "'10'", "needs a unit")),
        (("once", "--wait", "-1s"), ("--wait", "'-1s'", "negative")),
        (("once", "--free", "10X"), ("--free", "'10X'", "X is not a unit of size")),
        (("apply", "plan.json", "--wait", "1e3s"), ("--wait", "1e3s")),
        (("pin", "/x", "--for", "7"), ("--for", "'7'")),
        (("pause", "--for", "x"), ("--for", "'x'")),
        (("confirm", "cache", "--for", ""), ("--for", "''")),
        (("explain", ""), ("PATH", "is empty")),
        (("plan", "--frobnicate"), ("--frobnicate",)),
        (("statsu",), ("statsu", "status")),
        (("confirm",), ("LOCATION",)),
    ],
)
def test_a_value_that_cannot_be_meant_is_named_with_its_option(configured, arguments, named):
    """Status 2, before anything is opened."""
    done = run(*configured, *arguments)
    assert done.exit_code == 2
    for text in named:
        assert text in done.stderr
    assert done.stdout == ""
    assert not os.path.exists(os.path.join(os.path.dirname(configured[1]), "state"))


@pytest.mark.parametrize(
    "command",
    [("once", "--location", "cahce"), ("plan", "--location", "cahce"), ("list", "cahce"), ("pause", "cahce")],
)
def test_an_unknown_location_is_answered_with_the_known_ones_and_a_guess(configured, command):
    """Nobody has to look into the file."""
    done = run(*configured, *command)
    assert done.exit_code == 2
    assert "cache, cage" in done.stderr
    assert "did you mean cache?" in done.stderr


def test_commands_of_later_versions_do_not_exist_yet():
    """No stubs: whoever types one is told."""
    for name in ("nodes", "node", "top", "simulate"):
        assert run(name).exit_code == 2


def test_the_version_needs_no_configuration():
    """And no command."""
    done = run("--config", "/does/not/exist", "--version")
    assert (done.exit_code, done.stdout) == (0, f"cachewarden {__version__}\n")


def test_every_help_page_has_a_sentence_and_every_command_an_example():
    """Written for somebody who sees it for the first time."""
    group = typer.main.get_command(app)
    pages = [([name], command) for name, command in group.commands.items()]
    pages += [
        ([*names, name], each)
        for names, command in pages
        for name, each in getattr(command, "commands", {}).items()
    ]
    for names, command in pages:
        done = run(*names, "--help")
        assert done.exit_code == 0
        assert command.help, names
        assert all(len(text) <= 80 for text in done.stdout.splitlines()), names
        assert hasattr(command, "commands") or "Examples:\n" in done.stdout, names


def test_the_main_help_lists_the_exit_statuses():
    """Scripts depend on them."""
    text = run("--help").stdout
    for number in ("0", "1", "2", "3", "70"):
        assert any(each.split()[:1] == [number] for each in text.splitlines()), number


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigurationError(["one", "two"]), 2),
        (UsageError("no"), 2),
        (LedgerTooNewError("no"), 2),
        (NoServiceError("no"), 2),
        (LocationLockedError("no"), 3),
        (LocationUnavailableError("no"), 1),
        (PermissionError(13, "Permission denied", b"/state/\xff"), 1),
        (OSError(28, "No space left on device"), 1),
    ],
)
def test_each_error_has_its_status_and_one_line_per_problem(error, status, capsys):
    """On standard error, in readable form."""
    assert told(error) == status
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == len(getattr(error, "problems", [0]))
    assert all(each.startswith("cachewarden: ") for each in shown.err.splitlines())
    shown.err.encode("ascii")


def test_outcomes_and_statuses_agree():
    """0 is for what is within its limits, whether something had to go for it or not."""
    assert {outcome: status_of(outcome) for outcome in Outcome} == {
        Outcome.WITHIN_LIMITS: 0,
        Outcome.TRIMMED: 0,
        Outcome.WAITING: 1,
        Outcome.SHORT: 1,
        Outcome.UNAVAILABLE: 1,
        Outcome.FAILED: 1,
    }


def _process(code: str) -> subprocess.CompletedProcess[str]:
    """The real entry point with one more command, `boom`, that runs `code`."""
    program = f"""
import os, signal, sys
from cachewarden.cli.app import app
from cachewarden.cli import main
@app.command()
def boom() -> None:
    {code}
sys.argv = ["cachewarden", "boom"]
main()
"""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_a_bug_ends_with_70_and_a_line_to_report():
    """Type, place and version; the traceback after it."""
    done = _process("from cachewarden.units import parse_size; parse_size.nothing")
    assert done.returncode == 70
    first, *rest = done.stderr.splitlines()
    assert f"cachewarden {__version__}: this is a bug, please report it: AttributeError" in first
    assert rest[0] == "Traceback (most recent call last):"


def test_the_report_of_a_bug_names_the_innermost_place_in_our_code():
    """Not the library below it."""
    with pytest.raises(TypeError) as caught:
        json.dumps(entry_path(None))  # type: ignore[arg-type]
    assert "TypeError in cli/options.py:" in bug_report(caught.value)


def test_an_interrupted_command_ends_with_130_and_without_a_traceback():
    """As shells expect it."""
    # What starts things in the background may have taught them to ignore it.
    heeded = "signal.signal(signal.SIGINT, signal.default_int_handler); "
    done = _process(heeded + "signal.raise_signal(signal.SIGINT)")
    assert (done.returncode, done.stderr) == (130, "")


def test_a_reader_that_leaves_is_no_error_to_talk_about():
    """`cachewarden list | head -1`."""
    done = _process(
        "r, w = os.pipe(); os.dup2(w, 1); os.close(w); os.close(r); print('x' * 10**6, flush=True)"
    )
    assert (done.returncode, done.stderr) == (141, "")


def test_a_plan_file_is_for_its_owner_alone_and_replaced_as_a_whole(tmp_path):
    """The content is a plan of somebody's files."""
    path = str(tmp_path / "plan.json")
    write_plan(path, {"old": True})
    os.chmod(path, 0o644)
    write_plan(path, {"version": 1})
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert read_plan(path) == {"version": 1}
    assert os.listdir(tmp_path) == ["plan.json"]


def test_a_plan_is_never_put_in_the_place_of_a_device(tmp_path):
    """As root `-o /dev/null` would otherwise replace it by a file."""
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_plan(pipe, {"version": 1})
        assert json.loads(os.read(reader, 4096)) == {"version": 1}
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, "\xff"])
def test_a_file_that_is_no_plan_is_a_usage_error(tmp_path, content):
    """Whatever is in it."""
    path = tmp_path / "plan.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(UsageError, match="is no plan"):
        read_plan(str(path))
    with pytest.raises(UsageError, match="No such file"):
        read_plan(str(tmp_path / "none"))
    with pytest.raises(UsageError, match="cannot be written"):
        write_plan(str(tmp_path / "no" / "where"), {})


def test_a_path_is_taken_by_its_bytes_or_as_it_was_shown(tmp_path, monkeypatch):
    """The true name wins: a name may itself look like an escape."""
    monkeypatch.chdir(tmp_path)
    here = os.fsencode(tmp_path)
    assert entry_path("a/../b") == here + b"/b"
    assert entry_path("a\\xffb") == here + b"/a\xffb"
    assert entry_path(os.fsdecode(b"a\xffb")) == here + b"/a\xffb"
    os.mkdir("a\\xffb")
    assert entry_path("a\\xffb") == here + b"/a\\xffb"


def test_the_shell_offers_the_names_of_locations(configured):
    """From the files that the command line names so far; a broken one offers nothing."""
    group = typer.main.get_command(app)
    with group.make_context("cachewarden", [*configured, "list"]) as ctx:
        assert location_names(ctx, "ca") == ["cache", "cage"]
        assert location_names(ctx, "cac") == ["cache"]
    with group.make_context("cachewarden", ["--config", "/does/not/exist", "list"]) as ctx:
        assert location_names(ctx, "") == []


def test_a_configuration_is_checked_and_shown_without_a_ledger(configured):
    """What is there, what is missing; and nothing is written."""
    checked = run(*configured, "config", "check")
    assert checked.exit_code == 0
    assert checked.stdout.startswith("OK: 2 locations configured, 2 places now (1 there, 1 missing)\n")
    assert "[locations.cache]" in run(*configured, "config", "show").stdout
    assert json.loads(run("config", "schema").stdout)["title"] == "cachewarden"
    assert not os.path.exists(os.path.join(os.path.dirname(configured[1]), "state"))
