"""The reference page names everything that exists, so that nobody has to guess."""

import os
from collections.abc import Iterator

import pytest
import typer
from tests.daemon.cli_samples import FAILED, eviction, explanation, location, plan, status

from cachewarden.cli.app import app
from cachewarden.cli.guard import DONE, INTERRUPTED, LOCKED, NOT_WELL, PIPE_CLOSED, USAGE
from cachewarden.enforce.view import history_json
from cachewarden_policies.reasons import Cost, LastUseSource, Outcome

PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "reference", "commands.md")


@pytest.fixture(scope="module")
def page() -> str:
    """The text of the page."""
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def _commands() -> Iterator[tuple[str, list[str]]]:
    """Each command with its options and the names of its arguments."""
    top = typer.main.get_command(app)
    found = [("", top)]
    found += list(top.commands.items())
    found += [
        (f"{name} {below}", command)
        for name, group in top.commands.items()
        for below, command in getattr(group, "commands", {}).items()
    ]
    for name, command in found:
        options = [option for param in command.params for option in param.opts if option.startswith("-")]
        yield name, options


def _section(page: str, command: str) -> str:
    """The part of the page under the heading that names a command (or the global options)."""
    word = command.split(maxsplit=1)[0] if command else "Global options"
    parts = [part for part in page.split("\n## ") if word in part.partition("\n")[0].split(", ")]
    assert len(parts) == 1, word
    return parts[0]


@pytest.mark.parametrize(("command", "options"), list(_commands()), ids=str)
def test_every_command_and_every_option_has_its_place_on_the_page(page, command, options):
    """In the section of the command, by the name that people type."""
    section = _section(page, command)
    assert f"`{command}" in section
    for option in options:
        assert f"{option}" in section, option


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key != "blocked_bytes":
                yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


@pytest.mark.parametrize(
    "document",
    [
        plan().to_json(),
        location(failed=(FAILED,)).to_json(),
        status().to_json(),
        explanation().to_json(),
        history_json([eviction()]),
    ],
    ids=["plan", "once", "status", "explain", "history"],
)
def test_every_field_of_the_json_output_is_on_the_page(page, document):
    """Also the nested ones."""
    keys = set(_keys(document))
    assert len(keys) > 8
    assert [key for key in sorted(keys) if f"`{key}`" not in page and f'"{key}"' not in page] == []


def test_statuses_outcomes_and_small_enums_are_on_the_page(page):
    """What a script compares with."""
    for number in (DONE, NOT_WELL, USAGE, LOCKED, 70):
        assert f"\n| {number} |" in page
    assert f"| {INTERRUPTED}, {PIPE_CLOSED} |" in page
    for member in (*Outcome, *Cost, *LastUseSource):
        assert f"`{member}`" in page
