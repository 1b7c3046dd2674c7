"""From the Markdown of the reference to a man page: roff with the man macros, groff_man(7).

Tables become lists of tagged paragraphs: a terminal of 80 columns has no room for three columns of prose.
"""

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").enable("table")
_TOP = {"h1": "", "h2": ".SH", "h3": ".SS", "h4": ".SS"}


def page(title: str, section: int, name: str, markdown: str) -> str:
    """A whole page. `name` is the line of NAME, which apropos(1) finds."""
    head = f'.TH "{title}" "{section}" "" "cachewarden" ""\n.SH NAME\n{name}\n'
    return head + "".join(_Blocks(_PARSER.parse(markdown)).lines)


class _Blocks:
    """Turns block tokens into lines, in one pass."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.lines: list[str] = []
        self._lists: list[str] = []
        self._header: list[str] = []
        self._cells: list[str] = []
        self._in_head = False
        for number, token in enumerate(tokens):
            self._take(token, tokens[number - 1] if number else None)

    def _take(self, token: Token, before: Token | None) -> None:
        if token.type == "inline":
            self._inline(token, before)
        elif token.type in ("fence", "code_block"):
            self._write(".PP", ".RS 4", ".EX", *map(_verbatim, token.content.rstrip("\n").split("\n")))
            self._write(".EE", ".RE")
        elif token.type == "paragraph_open" and not token.hidden and not self._lists:
            self._write(".PP")
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            self._lists.append("1" if token.type.startswith("ordered") else "•")
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            self._lists.pop()
        elif token.type == "list_item_open":
            mark = f"{token.info}." if token.info else r"\(bu"
            self._write(f'.IP "{mark}" 4')
        elif token.type in ("thead_open", "thead_close"):
            self._in_head = token.type == "thead_open"
        elif token.type == "tr_open":
            self._cells = []
        elif token.type == "tr_close":
            self._row()

    def _inline(self, token: Token, before: Token | None) -> None:
        text = _text(token.children or ())
        if before is not None and before.type == "heading_open":
            macro = _TOP[before.tag]
            if macro:  # the first heading is the page's own
                self._write(f"{macro} {_plain(token).upper() if macro == '.SH' else _plain(token)}")
        elif before is not None and before.type in ("td_open", "th_open"):
            self._cells.append(text)
        else:
            self._write(text)

    def _row(self) -> None:
        if self._in_head:
            self._header = self._cells
            return
        tag, *rest = self._cells
        self._write(".TP", rf"{tag or '-'}")
        # A column between the first and the last says what it is, as no table's head does it here.
        named = [
            f"{name}: {cell}" if name and len(rest) > 1 and number < len(rest) - 1 else cell
            for number, (name, cell) in enumerate(zip(self._header[1:], rest, strict=False))
            if cell
        ]
        self._write("; ".join(named) or r"\&")

    def _write(self, *lines: str) -> None:
        self.lines += [f"{line}\n" for line in lines]


def _text(children: Sequence[Token]) -> str:
    parts = []
    for token in children:
        if token.type == "text":
            parts.append(_escaped(token.content))
        elif token.type == "code_inline":
            parts.append(rf"\fB{_escaped(token.content)}\fR")
        elif token.type in ("strong_open", "em_open"):
            parts.append(r"\fB" if token.type.startswith("strong") else r"\fI")
        elif token.type in ("strong_close", "em_close"):
            parts.append(r"\fR")
        elif token.type in ("softbreak", "hardbreak"):
            parts.append("\n")
    return "\n".join(_guarded(line) for line in "".join(parts).split("\n"))


def _plain(token: Token) -> str:
    return _escaped("".join(child.content for child in token.children or ()))


def _escaped(text: str) -> str:
    # A bare hyphen may be typeset as another sign, and then cannot be copied: groff_char(7).
    return text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")


def _guarded(line: str) -> str:
    """A line that begins like a request is none."""
    return rf"\&{line}" if line.startswith((".", "'")) else line


def _verbatim(line: str) -> str:
    return _guarded(_escaped(line))
