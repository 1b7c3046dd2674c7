"""Patterns of `protect` and `exclude`, matched against names as bytes. Pure: no disk is asked.

The language is that of gitignore(5) without negation: `*` and `?` stop at a slash, `**` does not,
`[a-z]` and `[!a-z]` are classes, a backslash takes the next character as it is. A pattern without
a slash matches at any depth, one with a slash from the top of the location.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# A match of a parent directory protects what is in it, and a match of the directory that several
# entries share (`models--org--name` of `models--org--name@COMMIT`) protects each of them. A plain
# name that merely contains `@` may be kept because of that: too much kept beats too much gone.
_END = rb"(?=[/@]|\Z)"


@dataclass(frozen=True, slots=True)
class Globs:
    """Compiled patterns. `matches` is true when any of them matches the name or a parent of it."""

    patterns: tuple[str, ...]
    _regex: re.Pattern[bytes] | None

    def matches(self, name: bytes) -> bool:
        """Whether a path relative to the location (bytes, no leading slash) is meant by a pattern."""
        return self._regex is not None and self._regex.match(name) is not None


def compile_globs(patterns: Iterable[str]) -> Globs:
    """Compile patterns as the configuration has them (undecodable bytes as surrogate escapes).

    Raises ValueError for a pattern that can match nothing: an empty one, or one of slashes only.
    """
    kept = tuple(patterns)
    if not kept:
        return Globs(kept, None)
    body = b"|".join(_translate(pattern) for pattern in kept)
    return Globs(kept, re.compile(b"(?:" + body + b")" + _END, re.DOTALL))


def _translate(pattern: str) -> bytes:
    """One pattern as a regular expression, to be matched from the start of the name."""
    raw = pattern.encode("utf-8", "surrogateescape").rstrip(b"/")
    if not raw:
        raise ValueError(f"the pattern {pattern!r} matches nothing")
    anchored = b"/" in raw
    segments = [segment for segment in raw.split(b"/") if segment]
    out = b"" if anchored else rb"(?:[^/]+/)*"
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        if segment == b"**":
            out += rb".+" if last else rb"(?:[^/]+/)*"
        else:
            out += _segment(segment) + (b"" if last else b"/")
    return out


def _segment(text: bytes) -> bytes:
    """One path segment as a regular expression; nothing in it ever matches a slash."""
    out = b""
    at = 0
    while at < len(text):
        char = text[at : at + 1]
        at += 1
        if char == b"*":
            out += b"[^/]*"
        elif char == b"?":
            out += b"[^/]"
        elif char == b"\\" and at < len(text):
            out += re.escape(text[at : at + 1])
            at += 1
        elif char == b"[" and (end := text.find(b"]", at + 2 if text[at : at + 1] in b"!^" else at + 1)) > 0:
            out += _class(text[at:end])
            at = end + 1
        else:
            out += re.escape(char)
    return out


def _class(body: bytes) -> bytes:
    """The inside of a bracket expression: a leading `!` or `^` negates, a dash makes a range.

    A range that runs backwards matches nothing, as in a shell.
    """
    negated = body[:1] in (b"!", b"^")
    body = body[1:] if negated else body
    members: set[int] = set()
    at = 0
    while at < len(body):
        if body[at + 1 : at + 2] == b"-" and at + 2 < len(body):
            members.update(range(body[at], body[at + 2] + 1))
            at += 3
        else:
            members.add(body[at])
            at += 1
    wanted = (set(range(256)) - members if negated else members) - {ord("/")}
    if not wanted:
        return b"(?!)"
    return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(wanted)) + b"]"
