"""From an environment to the paths that tools would use in it. Touches nothing."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cachewarden.discover.tools import KNOWN, TOOLS, Tool

# With its zero a path is no longer than this (limits.h). Anybody's process may say anything: values that name
# each other could ask for gigabytes.
_PATH_MAX = 4096
_VARIABLE = re.compile(rb"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True, slots=True)
class Environment:
    """The known variables of one user or process, with the home that `~` means; nothing else is kept."""

    home: bytes
    values: tuple[tuple[str, bytes], ...] = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[bytes, bytes]], home: bytes | None = None) -> "Environment | None":
        """What is known of `NAME, value` pairs; None without a home that is an absolute path."""
        known = {
            name.decode(): value
            for name, value in pairs
            if len(value) < _PATH_MAX and name.decode("latin-1") in KNOWN
        }
        home = home or known.get("HOME", b"")
        if not home.startswith(b"/"):
            return None
        return cls(os.path.normpath(home), tuple(sorted((name, v) for name, v in known.items() if v)))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A path (absolute, normalised; `*` in its last component only) that a tool would use.

    `via` is the variable that says so, or `default`.
    """

    path: bytes
    tool: Tool
    via: str


def candidates(environment: Environment) -> Iterator[Candidate]:
    """All places that the table knows in this environment, whether they exist or not.

    All variables that are set count, not only the first in a tool's precedence: what one program keeps
    under the second is a cache too.
    """
    values = dict(environment.values)
    cache = _expanded(values.get("XDG_CACHE_HOME", b"~/.cache"), environment, values)
    for tool in TOOLS:
        for variable, below in tool.variables:
            value = _expanded(values.get(variable, b""), environment, values)
            if value is not None:
                yield Candidate(_joined(value, below), tool, variable)
        for default in tool.defaults:
            head, _, rest = default.partition("/")
            base = {"~": environment.home, "$CACHE": cache, "": b"/"}[head]
            if base is not None:
                yield Candidate(_joined(base, rest), tool, "default")


def _joined(base: bytes, below: str) -> bytes:
    return os.path.normpath(os.path.join(base, os.fsencode(below)))


def _expanded(value: bytes, environment: Environment, values: Mapping[str, bytes]) -> bytes | None:
    """A value with `~` and known variables filled in, as huggingface_hub does (constants.py).

    None for what is then no absolute path, or means another user's home or an unknown variable.
    """

    def filled(match: re.Match[bytes]) -> bytes:
        return values.get((match[1] or match[2]).decode(), match[0])

    value = _VARIABLE.sub(filled, value)
    if value == b"~" or value.startswith(b"~/"):
        value = environment.home + value[1:]
    if len(value) >= _PATH_MAX or not value.startswith(b"/") or b"$" in value or b"*" in value:
        return None
    return b"/" + os.path.normpath(value).lstrip(b"/")
