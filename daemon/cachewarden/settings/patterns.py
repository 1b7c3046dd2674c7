"""Location paths as they are written: absolute, one directory level per component, globs like a shell's."""

import fnmatch
import os
import re

from cachewarden.paths import show, unshow

_GLOB = re.compile(rb"[*?\[]")


def is_glob(part: bytes) -> bool:
    """Whether a path, or a component of one, stands for several."""
    return _GLOB.search(part) is not None


def parse_pattern(text: str, home: bytes | None) -> bytes:
    """A configured path as normalised bytes. `home` is what `~/` means, None where it means nothing.

    Raises ValueError with a sentence.
    """
    path = unshow(text)
    if path.startswith(b"~/"):
        if home is None:
            raise ValueError("~/ works with --user only: the service has no home; write /home/*/…")
        path = home + path[1:]
    if not path.startswith(b"/"):
        raise ValueError("must be an absolute path")
    if b"\0" in path:
        raise ValueError("a path cannot contain a NUL")
    parts = path.split(b"/")
    if b"**" in parts:
        raise ValueError("** is not taken: it would search whole trees; write one * per directory level")
    if b".." in parts:
        raise ValueError(".. is not taken: behind a link it would lead elsewhere")
    # normpath keeps two leading slashes, as POSIX allows; Linux gives them no meaning.
    return os.path.normpath(b"/" + path.lstrip(b"/"))


def matches(name: bytes, pattern: bytes) -> bool:
    """Whether one component fits, as in a shell: a leading dot has to be written.

    Characters of UTF-8 count as one for `?` and in `[...]`; an undecodable byte counts as one too.
    """
    if name.startswith(b".") and not pattern.startswith(b"."):
        return False
    return fnmatch.fnmatchcase(_text(name), _text(pattern))


def matches_path(path: bytes, pattern: bytes) -> bool:
    """Whether a whole path fits, component by component."""
    parts, wanted = path.split(b"/"), pattern.split(b"/")
    return len(parts) == len(wanted) and all(map(matches, parts, wanted))


def overlap(one: bytes, other: bytes) -> str | None:
    """How two normalised paths overlap, in words that follow the first one; None: not at all."""
    if one == other:
        return f"is the same as {show(other)}"
    if one.startswith(other.rstrip(b"/") + b"/"):
        return f"lies inside {show(other)}"
    if other.startswith(one.rstrip(b"/") + b"/"):
        return f"contains {show(other)}"
    return None


def _text(part: bytes) -> str:
    return part.decode("utf-8", "surrogateescape")
