"""What reaches a terminal, and what reaches a pipe."""

import io
import json
import os
import select

import pytest

from cachewarden.cli.blocks import EMPTY, Bar, Column, Table, bad, line, strong
from cachewarden.cli.screen import Screen, plain

TABLE = Table(
    (Column("ENTRY", wraps=True), Column("SIZE", right=True), Column("", needs=70), Column("WHY", needs=90)),
    [("[red]x", "12 GiB", Bar(0.5), "over"), (strong("日本"), "5 MiB", Bar(1.0), "é")],
)


class Terminal:
    """A terminal of `width` columns; `text` is what was drawn on it."""

    def __init__(self, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", str(width))
        self.main, side = os.openpty()
        self.file = open(side, "w", encoding="utf-8")  # noqa: SIM115 - closed with its screen
        self.screen = Screen(self.file, self.file)

    @property
    def text(self) -> str:
        """All that was written, with line ends as the program wrote them."""
        self.file.flush()
        found = b""
        while select.select([self.main], [], [], 0.05)[0]:
            found += os.read(self.main, 65536)
        return found.decode().replace("\r\n", "\n")

    def close(self) -> None:
        """Both ends."""
        self.file.close()
        os.close(self.main)


@pytest.fixture
def terminal(monkeypatch):
    """Makes terminals of a width."""
    made: list[Terminal] = []

    def make(width: int) -> Terminal:
        made.append(Terminal(width, monkeypatch))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_pipe_gets_aligned_text_without_boxes_bars_or_colours():
    """Wide characters count as two columns, and no line ends in spaces."""
    assert plain(TABLE) == ["ENTRY     SIZE  WHY", "[red]x  12 GiB  over", "日本     5 MiB  é"]


def test_a_pipe_gets_every_column_and_whole_names_however_long():
    """No terminal's width is guessed where there is none."""
    (_, row) = plain(Table((Column("ENTRY", wraps=True), Column("WHY", needs=500)), [("x" * 900, "over")]))
    assert row == "x" * 900 + "  over"


def test_a_table_without_titles_has_no_title_line():
    """As the story that `explain` tells."""
    assert plain(Table((Column(""), Column("")), [("a", "b")], indent=1)) == ["  a  b"]


def test_a_narrow_terminal_leaves_out_what_needs_more_columns(terminal):
    """The wide one shows the bar and the last column, the narrow one neither."""
    narrow, wide = terminal(60), terminal(100)
    for each in (narrow, wide):
        each.screen.show([TABLE])
    assert "█" not in narrow.text
    text = wide.text
    assert "████████" in text
    assert "WHY" in text


def test_a_terminal_gets_colours_and_no_name_is_taken_for_markup(terminal):
    """A cache entry may be called [red]."""
    screen = terminal(80)
    screen.screen.show([line(bad("[bold]over[/bold] :smile: "), "[red]x")])
    text = screen.text
    assert "\x1b[1;31m[bold]over[/bold] :smile: \x1b[0m" in text
    assert "[red]x" in text


def test_a_long_name_is_folded_on_a_terminal_and_never_cut(terminal):
    """Every character is there."""
    screen = terminal(40)
    screen.screen.show(
        [Table((Column("ENTRY", wraps=True), Column("SIZE", right=True)), [("n" * 90, "1 B")])]
    )
    text = screen.text
    assert text.count("n") == 90
    assert "…" not in text


def test_no_color_is_respected(terminal, monkeypatch):
    """https://no-color.org: any non-empty value."""
    screen = terminal(80)
    monkeypatch.setenv("NO_COLOR", "1")
    screen = terminal(80)
    monkeypatch.setenv("NO_COLOR", "1")
    again = Screen(screen.file, screen.file)
    again.show([line(bad("over"))])
    assert "\x1b[1;31m" not in screen.text


def test_a_bar_tells_nearly_full_from_full_and_nearly_empty_from_empty(terminal):
    """Rounding never hides a crossed limit, nor a last byte."""
    screen = terminal(80)
    screen.screen.show([line(Bar(0.0)), line(Bar(0.001)), line(Bar(0.999)), line(Bar(1.0)), line(Bar(7.0))])
    assert [each.count("█") for each in screen.text.splitlines()] == [0, 1, 15, 16, 16]


def test_empty_lines_are_never_doubled_and_none_is_last():
    """However views put their parts together."""
    out = io.StringIO()
    Screen(out, io.StringIO()).show([line("a"), EMPTY, EMPTY, line("b"), EMPTY, EMPTY])
    assert out.getvalue() == "a\n\nb\n"


@pytest.mark.parametrize(("encoding", "raw"), [("utf-8", True), ("latin-1", False), ("ascii", False)])
def test_json_is_one_document_that_any_locale_can_hold(encoding, raw):
    """Outside UTF-8 everything beyond ASCII is escaped as JSON has it."""
    held = io.BytesIO()
    out = io.TextIOWrapper(held, encoding=encoding)
    Screen(out, io.StringIO()).json({"entry": "日本é"})
    assert json.loads(held.getvalue().decode(encoding)) == {"entry": "日本é"}
    assert ("日本" in held.getvalue().decode(encoding)) is raw


def test_messages_go_to_standard_error_line_by_line():
    """Each with the name of the program."""
    out, err = io.StringIO(), io.StringIO()
    Screen(out, err).say("one\ntwo")
    assert err.getvalue() == "cachewarden: one\ncachewarden: two\n"
    assert out.getvalue() == ""
