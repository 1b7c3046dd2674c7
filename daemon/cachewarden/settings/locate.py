"""Where each key of a TOML text stands, which `tomllib` does not tell.

The scanner knows just enough of TOML to follow keys: headers, dotted and quoted keys, inline
tables, strings and brackets. It decides nothing about validity (that is `tomllib`'s job) and stops
at the first thing it does not know, keeping what it found: that is how a duplicate key, which
`tomllib` refuses without a name, still gets one.
"""

import re
import tomllib
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, field

Path = tuple[str, ...]

_STRING = re.compile(
    r"""
    \"{3} (?: [^\\] | \\. )*? \"{3} \"{0,2}   # up to two quotes may stand before the closing three
    | '{3} .*? '{3} '{0,2}
    | " (?: [^"\\\n] | \\. )* "
    | ' [^'\n]* '
    """,
    re.DOTALL | re.VERBOSE,
)
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\n#]*")
_BORING = re.compile(r"""[^\[\]{}"'#]+|#[^\n]*""")


@dataclass(frozen=True, slots=True)
class Place:
    """A line (from 1), and the value as it is written there; empty for a table's header."""

    line: int
    raw: str = ""


@dataclass(slots=True)
class Located:
    """Places by key, and the keys that were set twice: (key, second place, line of the first)."""

    places: dict[Path, Place] = field(default_factory=dict)
    duplicates: list[tuple[Path, Place, int]] = field(default_factory=list)


class _LostError(Exception):
    """Something that is not TOML as we know it."""


def locate(text: str) -> Located:
    """The places of all keys of a TOML text; for invalid text, of those before the error."""
    scanner = _Scanner(text)
    with suppress(_LostError):
        scanner.document()
    return scanner.found


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found = Located()
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._set: set[Path] = set()

    def document(self) -> None:
        prefix: Path = ()
        while self._skip(_BLANK) < len(self.text):
            prefix = self._header() if self._peek() == "[" else self._pair(prefix)

    def _header(self) -> Path:
        line = self._line()
        brackets = "[[" if self.text.startswith("[[", self.at) else "["
        self.at += len(brackets)
        path = self._key()
        self._expect("]" * len(brackets))
        self._around((), path, line)
        if brackets == "[":  # each [[header]] adds an element, and none is a duplicate
            self._record(path, Place(line))
        return path

    def _pair(self, prefix: Path) -> Path:
        line = self._line()
        path = prefix + self._key()
        self._around(prefix, path, line)
        self._expect("=")
        self._skip(_SPACE)
        start = self.at
        duplicate = path in self._set
        if self._peek() == "{" and not duplicate:
            self.found.places.setdefault(path, Place(line))
            self._inline_table(path)
        else:
            self._value()
        self._record(path, Place(line, self.text[start : self.at].strip()))
        return prefix

    def _around(self, prefix: Path, path: Path, line: int) -> None:
        """A dotted key makes the tables that it names on the way."""
        for length in range(len(prefix) + 1, len(path)):
            self.found.places.setdefault(path[:length], Place(line))

    def _record(self, path: Path, place: Place) -> None:
        if path in self._set:
            self.found.duplicates.append((path, place, self.found.places[path].line))
            return
        self._set.add(path)
        self.found.places[path] = place

    def _inline_table(self, path: Path) -> None:
        self._expect("{")
        while self._skip(_BLANK) < len(self.text) and self._peek() != "}":
            self._pair(path)
            self._skip(_BLANK)
            if self._peek() == ",":
                self.at += 1
        self._expect("}")

    def _value(self) -> None:
        if self._peek() in "[{":
            self._brackets()
        elif match := _STRING.match(self.text, self.at):
            self.at = match.end()
        else:
            self._skip(_SCALAR)

    def _brackets(self) -> None:
        """Over an array or table that is not looked into; its kinds of brackets are not told apart."""
        depth = 0
        while self.at < len(self.text):
            match = _STRING.match(self.text, self.at) or _BORING.match(self.text, self.at)
            if match:
                self.at = match.end()
                continue
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(self._peek(), 0)
            self.at += 1
            if depth == 0:
                return
        raise _LostError

    def _key(self) -> Path:
        parts: list[str] = []
        while True:
            self._skip(_SPACE)
            if match := _BARE.match(self.text, self.at):
                parts.append(match[0])
            elif match := _STRING.match(self.text, self.at):
                parts.append(_unquoted(match[0]))
            else:
                raise _LostError
            self.at = match.end()
            self._skip(_SPACE)
            if self._peek() != ".":
                return tuple(parts)
            self.at += 1

    def _expect(self, token: str) -> None:
        self._skip(_SPACE)
        if not self.text.startswith(token, self.at):
            raise _LostError
        self.at += len(token)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        assert match is not None  # all patterns given here match the empty text
        self.at = match.end()
        return self.at

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1] or "\n"

    def _line(self) -> int:
        return bisect_right(self._lines, self.at)


def _unquoted(raw: str) -> str:
    try:
        return str(tomllib.loads(f"key = {raw}")["key"])
    except tomllib.TOMLDecodeError as error:
        raise _LostError from error
