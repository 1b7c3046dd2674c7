"""What the documents say can be followed: links lead somewhere, commands exist, configuration loads."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from cachewarden.cli.app import app
from cachewarden.errors import ConfigurationError
from cachewarden.settings import load

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`\n]+)`")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
REPOSITORY_PATH = re.compile(
    r"(?:daemon|policies|systemd|tests|docs|benchmarks|requirements|\.ci)/[\w.*/-]*|[A-Z]\w+\.md|Makefile"
)
# What stands for something else in an example: a name to fill in, or more of the same.
PLACEHOLDERS = {"COMMAND", "…"}

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def blocks(page: Path, *languages: str) -> list[str]:
    """The contents of the fenced blocks of these languages."""
    return [
        body for language, body in FENCE.findall(page.read_text(encoding="utf-8")) if language in languages
    ]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made of their text where the project is hosted."""
    titles = (re.sub(r"[^\w\- ]", "", title.strip().lower()) for title in HEADING.findall(prose(page)))
    return {title.replace(" ", "-") for title in titles}


def links(page: Path) -> list[tuple[str, str]]:
    """Links into the repository, as (path relative to the page, anchor); "" where there is none."""
    found = (target for target in LINK.findall(prose(page)) if "://" not in target)
    return [(target.partition("#")[0], target.partition("#")[2]) for target in found]


def commands(page: Path) -> Iterator[tuple[list[str], bool]]:
    """The arguments of every `cachewarden …` on a page, and whether it stands there to be copied.

    In a sentence, `cachewarden confirm` alone is just a name.
    """
    shown = [line for body in blocks(page, "sh", "bash") for line in body.splitlines()]
    for body in blocks(page, "console"):
        shown += [line[2:] for line in body.splitlines() if line.startswith("$ ")]
    named = [span for span in SPAN.findall(prose(page)) if re.match(r"(sudo )?cachewarden ", span)]
    for line, copied in [*((line, True) for line in shown), *((span, False) for span in named)]:
        for words in simple_commands(line):
            command = words[1:] if words[:1] == ["sudo"] else words
            if command[:1] == ["cachewarden"] and not PLACEHOLDERS & {*command, command[-1][-1:]}:
                yield command[1:], copied


def simple_commands(line: str) -> list[list[str]]:
    """A command line as lists of words, one for each simple command in it."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|;&<>"):
            found.append([])
        else:
            found[-1].append(word)
    return found


def parse(arguments: list[str]) -> None:
    """Let the command's own parser judge arguments, without running anything. Raises its usage error."""
    command = typer.main.get_command(app)
    parent = None
    name, rest = "cachewarden", list(arguments)
    while True:
        context = command.make_context(name, rest, parent=parent)
        rest = [*getattr(context, "_protected_args", []), *context.args]
        if not hasattr(command, "resolve_command") or not rest:
            return
        name, command, rest = command.resolve_command(context, rest)
        parent = context


def loads(*files: Path, user: bool = False) -> str | None:
    """Why configuration files do not load together; None: they do."""
    try:
        load([os.fsencode(file) for file in files], environ={"HOME": "/home/alice"}, user=user)
    except ConfigurationError as error:
        return str(error)
    return None


@pages
def test_every_link_leads_to_a_file_and_a_heading(page):
    """A guide with dead links sends people away."""
    for target, anchor in links(page):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{target} does not exist"
        if anchor:
            assert anchor in anchors(file), f"{target}#{anchor}: there is no such heading"


def test_every_page_can_be_reached_from_the_readme_or_the_index():
    """What nothing links to, nobody reads."""
    reached: set[Path] = set()
    waiting = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or not page.exists():
            continue
        reached.add(page)
        targets = [(page.parent / target).resolve() for target, _ in links(page) if target]
        targets = [target / "README.md" if target.is_dir() else target for target in targets]
        waiting += [target for target in targets if target.suffix == ".md"]
    assert set(PAGES) - reached == set()


@pages
def test_every_command_that_is_shown_exists_with_its_options(page):
    """Commands are copied, not read."""
    for arguments, copied in commands(page):
        if "--help" in arguments or "--version" in arguments:
            continue  # these end the parser at once
        try:
            parse(arguments)
        except Exception as error:  # noqa: BLE001 - whatever the parser raises is what a user would meet
            if copied or type(error).__name__ != "MissingParameter":
                pytest.fail(f"cachewarden {shlex.join(arguments)}: {error}")


@pages
def test_every_configuration_that_is_shown_loads(page, tmp_path):
    """By itself, as a user's own, or as a drop-in over the first configuration of the README."""
    first = tmp_path / "config.toml"
    first.write_text(blocks(ROOT / "README.md", "toml")[0])
    for number, body in enumerate(blocks(page, "toml")):
        shown = tmp_path / f"{number}.toml"
        shown.write_text(body)
        problems = [loads(shown), loads(shown, user=True), loads(first, shown)]
        assert None in problems, problems


@pages
def test_every_file_of_the_repository_that_is_named_exists(page):
    """Files are renamed; documents are forgotten."""
    for span in SPAN.findall(prose(page)):
        if REPOSITORY_PATH.fullmatch(span):
            assert list(ROOT.glob(span)) if "*" in span else (ROOT / span).exists(), f"{span} does not exist"


def test_the_checks_above_would_notice():
    """A parser that takes everything, or a loader that is asked nothing, would pass them all."""
    for wrong in (["plan", "--nonsense"], ["explode"], ["explain"], ["trash", "burn"], ["status", "extra"]):
        with pytest.raises(Exception, match=r".+"):
            parse(wrong)
    found = [arguments for page in PAGES for arguments, _ in commands(page)]
    assert ["config", "check"] in found
    assert len(found) > 30
    assert sum(len(blocks(page, "toml")) for page in PAGES) > 5
