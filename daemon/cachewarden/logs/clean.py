"""Making any value fit for one line: no name of a file may end a line, forge one, or move a cursor."""

import math
from collections.abc import Mapping
from typing import Any

from cachewarden.paths import show


def clean(value: object) -> Any:
    """The value for JSON: bytes through `show`, text without control characters, the rest as text.

    Numbers, booleans, None, mappings and sequences keep their form; nan and infinity, which JSON
    does not know, become text.
    """
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Mapping):
        return {one_line(str(key)): clean(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [clean(each) for each in value]
    return show(value) if isinstance(value, bytes) else one_line(_text(value))


def one_line(text: str, keep: str = "\\") -> str:
    """Text with everything escaped that is not printable. `keep` are characters that stay.

    Backslashes do: text often went through `show` already, and doubling its escapes would make
    them name another file.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char in keep else _char(char) for char in text)


def _char(char: str) -> str:
    try:
        return show(char.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:  # half of a pair, which no file name can hold
        return show(char.encode("utf-8", "surrogatepass"))


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001  a broken __str__ must not cost the event
        return f"<{type(value).__name__}: {type(error).__name__}>"
