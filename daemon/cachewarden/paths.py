"""Paths are bytes from the disk to the ledger; this module is the one way to show them to people.

`show` is reversible (`unshow`), keeps readable UTF-8 as it is, and leaves no byte that could end a
line, move a cursor, or be invalid in JSON, in a Prometheus label or in a log.
"""

import re
import unicodedata

_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}
# Control (Cc), format (Cf: bidirectional overrides can forge a line), line and paragraph separators,
# private use and unassigned: nothing a terminal should get to see raw.
_HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Co", "Cn", "Cs"})
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|n|t|r|\\)")
_UNNAMED = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\"}


def show(path: bytes) -> str:
    """Readable form of a path: UTF-8, with undecodable and invisible bytes as `\\xff`, `\\n`.

    >>> show(b"models--\\xff\\nx")
    'models--\\\\xff\\\\nx'
    """
    text = path.decode("utf-8", "surrogateescape")
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return "".join(_show_char(char) for char in text)


def _show_char(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    if 0xDC80 <= ord(char) <= 0xDCFF:
        return f"\\x{ord(char) - 0xDC00:02x}"
    if unicodedata.category(char) in _HIDDEN:
        return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
    return char


def unshow(text: str) -> bytes:
    """The bytes that `show` was given. Text without escapes is taken as UTF-8.

    A backslash that starts none of `show`'s escapes stands for itself, so that people may type
    ordinary paths.
    """
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(text):
        parts.append(text[end : match.start()].encode("utf-8", "surrogateescape"))
        code = match[1]
        parts.append(bytes([int(code[1:], 16)]) if code[0] == "x" else _UNNAMED[code])
        end = match.end()
    parts.append(text[end:].encode("utf-8", "surrogateescape"))
    return b"".join(parts)
