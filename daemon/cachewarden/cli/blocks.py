"""What a command has to say, as values: lines and tables that know nothing of terminals.

Views make them and `screen` shows them, so that what is said is one thing, for a terminal and for a
pipe, and can be tested without either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Style(StrEnum):
    """How a piece of text is meant; the screen knows the colours."""

    PLAIN = "plain"
    STRONG = "strong"
    DIM = "dim"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Bit:
    """A piece of text with a meaning."""

    text: str
    style: Style = Style.PLAIN


@dataclass(frozen=True, slots=True)
class Bar:
    """How full something is, 1.0 for full; may be more. Only a terminal shows it."""

    share: float
    style: Style = Style.GOOD


Content = str | Bit | Bar


@dataclass(frozen=True, slots=True)
class Line:
    """One line (on a narrow terminal: one paragraph). `indent` in steps of two spaces."""

    content: tuple[Content, ...]
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `right` for numbers; `wraps` where a terminal may break the text into lines.

    A terminal narrower than `needs` columns leaves it out; a pipe never does.
    """

    title: str
    right: bool = False
    wraps: bool = False
    needs: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under titles (unless none has one); each row has one content for each column."""

    columns: tuple[Column, ...]
    rows: Sequence[tuple[Content, ...]]
    indent: int = 0


Block = Line | Table
EMPTY = Line(())


def line(*content: Content, indent: int = 0) -> Line:
    """A line of these pieces."""
    return Line(content, indent)


def good(text: str) -> Bit:
    """As it should be."""
    return Bit(text, Style.GOOD)


def warn(text: str) -> Bit:
    """Somebody should know."""
    return Bit(text, Style.WARN)


def bad(text: str) -> Bit:
    """Somebody should act."""
    return Bit(text, Style.BAD)


def dim(text: str) -> Bit:
    """Beside the point."""
    return Bit(text, Style.DIM)


def strong(text: str) -> Bit:
    """The point."""
    return Bit(text, Style.STRONG)
