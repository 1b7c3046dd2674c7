"""Where output goes: tables and colours on a terminal, aligned plain text in a pipe, JSON for programs.

Nothing here is ever taken for markup: a cache entry may be called `[red]`.
"""

import json
import sys
from collections.abc import Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from cachewarden.cli.blocks import EMPTY, Bar, Bit, Block, Content, Line, Style, Table

_STEP = 2
_GAP = "  "
_BAR_WIDTH = 16
_RICH = {
    Style.PLAIN: "",
    Style.STRONG: "bold",
    Style.DIM: "dim",
    Style.GOOD: "green",
    Style.WARN: "yellow",
    Style.BAD: "bold red",
}


class Screen:
    """Standard output and standard error, as they are for this command."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.out = sys.stdout if out is None else out
        self.err = sys.stderr if err is None else err
        self.console = _console(self.out)
        self.messages = _console(self.err)

    @property
    def terminal(self) -> bool:
        """Whether a person sits at standard output."""
        return self.console.is_terminal

    def show(self, blocks: Sequence[Block]) -> None:
        """Write blocks to standard output; of several empty lines one, and none at the end."""
        for number, block in enumerate(blocks):
            if block == EMPTY and (number + 1 == len(blocks) or blocks[number + 1] == EMPTY):
                continue
            if self.terminal:
                self.console.print(_rich(block, self.console), soft_wrap=False)
            else:
                self.out.writelines(f"{text}\n" for text in plain(block))
        self.out.flush()

    def json(self, document: object) -> None:
        """Write one JSON document to standard output: the only thing that is written there then."""
        encoding = (self.out.encoding or "").lower().replace("-", "")
        json.dump(document, self.out, indent=2, ensure_ascii=encoding != "utf8")
        self.out.write("\n")
        self.out.flush()

    def write(self, text: str) -> None:
        """Write text to standard output as it is."""
        self.out.write(text)
        self.out.flush()

    def say(self, text: str, style: Style = Style.PLAIN) -> None:
        """A message for people, on standard error, so that no pipe gets it."""
        for each in text.splitlines() or [""]:
            if self.messages.is_terminal:
                self.messages.print(Text(f"cachewarden: {each}", _RICH[style], overflow="fold"))
            else:
                self.err.write(f"cachewarden: {each}\n")
        self.err.flush()


def plain(block: Block) -> list[str]:
    """A block as lines for a pipe: nothing is wrapped, cut or coloured, no bars, no boxes."""
    lead = " " * (_STEP * block.indent)
    if isinstance(block, Line):
        return [(lead + "".join(map(_text, block.content))).rstrip()]
    titles = tuple(column.title for column in block.columns)
    rows = [titles] if any(titles) else []
    rows += [tuple(map(_text, row)) for row in block.rows]
    # A column that has only bars says nothing here.
    filled = [index for index in range(len(block.columns)) if any(row[index] for row in rows)]
    widths = {index: max(cell_len(row[index]) for row in rows) for index in filled}
    return [
        (
            lead + _GAP.join(_padded(row[at], widths[at], right=block.columns[at].right) for at in filled)
        ).rstrip()
        for row in rows
    ]


def _padded(text: str, width: int, *, right: bool) -> str:
    # Not str.ljust: a wide character takes two columns, a combining one none.
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def _text(content: Content) -> str:
    if isinstance(content, Bar):
        return ""
    return content.text if isinstance(content, Bit) else content


def _console(file: TextIO) -> Console:
    return Console(file=file, markup=False, highlight=False, emoji=False)


def _rich(block: Block, console: Console) -> RenderableType:
    lead = _STEP * block.indent
    if isinstance(block, Line):
        text = Text(overflow="fold")
        for content in block.content:
            text.append_text(_piece(content, console))
            text.append(" " if isinstance(content, Bar) else "")
        return Padding(text, (0, 0, 0, lead), expand=False) if lead and text.plain else text
    return Padding(_rich_table(block, console), (0, 0, 0, lead), expand=False)


def _rich_table(block: Table, console: Console) -> RichTable:
    titled = any(column.title for column in block.columns)
    table = RichTable(
        box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), header_style="dim", show_header=titled
    )
    shown = [index for index, column in enumerate(block.columns) if column.needs <= console.width]
    for column in (block.columns[index] for index in shown):
        table.add_column(
            Text(column.title),
            justify="right" if column.right else "left",
            no_wrap=not column.wraps,
            overflow="fold",
        )
    for row in block.rows:
        table.add_row(*(_piece(row[index], console) for index in shown))
    return table


def _piece(content: Content, console: Console) -> Text:
    if isinstance(content, Bar):
        return _bar(content, ascii_only=console.options.ascii_only)
    if isinstance(content, Bit):
        return Text(content.text, _RICH[content.style], overflow="fold")
    return Text(content, overflow="fold")


def _bar(bar: Bar, *, ascii_only: bool) -> Text:
    filled = min(_BAR_WIDTH, round(bar.share * _BAR_WIDTH))
    # Hardly anything and hardly nothing are told apart from nothing and from full.
    filled = max(filled, 1) if bar.share > 0 else 0
    filled = min(filled, _BAR_WIDTH - 1) if bar.share < 1 else filled
    full, rest = ("#", ".") if ascii_only else ("█", "░")
    return Text(full * filled, _RICH[bar.style]).append(rest * (_BAR_WIDTH - filled), "dim")
