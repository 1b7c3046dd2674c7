"""Layers of configuration: each a tree of TOML values that knows where every key of it was set.

Layers merge key by key, the later one wins, lists replace. Nothing here knows which keys exist.
"""

import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cachewarden.paths import show
from cachewarden.settings.locate import Path

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_VALUE = 100


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a key was set: a file and a line, or (without a line) a variable, a preset, a default.

    `raw` is the value as it was typed there; empty for a table.
    """

    source: str
    line: int | None = None
    raw: str = ""
    variable: bool = False

    def __str__(self) -> str:
        if self.variable:
            return f"environment variable {self.source}"
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(slots=True)
class Layer:
    """A tree of TOML values, the origin of each key in it, and what was wrong with reading it."""

    tree: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, Origin] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def origin(self, path: Path) -> Origin:
        """Where `path`, or the nearest table around it, was set."""
        for length in range(len(path), 0, -1):
            if found := self.origins.get(path[:length]):
                return found
        return Origin("default")

    def problem(self, path: Path, sentence: str) -> str:
        """`FILE:LINE: section.key = value: sentence`, or the variable's name in place of the file."""
        found = self.origin(path)
        typed = shortened(found.raw)
        if found.variable:
            return printable(f"{found.source}={typed}: {dotted(path)}: {sentence}")
        value = f" = {typed}" if typed and path in self.origins else ""
        return printable(f"{found}: {dotted(path)}{value}: {sentence}")

    def value(self, path: Path) -> Any:
        """The TOML value at a path that is there."""
        here: Any = self.tree
        for part in path:
            here = here[part]
        return here

    def put(self, path: Path, value: Any, origin: Origin) -> bool:
        """Set one key; False when a part of the way there is not a table."""
        here = self.tree
        for length, part in enumerate(path[:-1], 1):
            below = here.setdefault(part, {})
            if not isinstance(below, dict):
                return False
            self.origins.setdefault(path[:length], origin)
            here = below
        here[path[-1]] = value
        self.origins[path] = origin
        return True


def merge(layers: Iterable[Layer]) -> Layer:
    """All layers as one, from the weakest to the strongest. The given ones stay as they are."""
    merged = Layer()
    for layer in layers:
        _overlay(merged, layer, merged.tree, layer.tree, ())
        merged.problems += layer.problems
        merged.warnings += layer.warnings
    return merged


def _overlay(merged: Layer, layer: Layer, base: dict[str, Any], over: dict[str, Any], path: Path) -> None:
    for key, value in over.items():
        here = (*path, key)
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            _overlay(merged, layer, base[key], value, here)
            continue
        base[key] = copy.deepcopy(value)
        for old in [each for each in merged.origins if each[: len(here)] == here]:
            del merged.origins[old]
        merged.origins |= {
            each: origin for each, origin in layer.origins.items() if each[: len(here)] == here
        }


def dotted(path: Path) -> str:
    """A key as TOML writes it: `policies."my policy".max_size`."""
    return ".".join(part if _BARE.fullmatch(part) else toml_text(part) for part in path)


def toml_text(value: Any) -> str:
    """A value in TOML; tables inline."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_text(each) for each in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{dotted((key,))} = {toml_text(each)}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, str):
        return '"' + "".join(_toml_char(char) for char in value) + '"'
    return str(value)


def _toml_char(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return f"\\u{ord(char):04x}" if ord(char) < 0x20 or ord(char) == 0x7F else char


def printable(text: str) -> str:
    """Text with everything escaped that a terminal would act on; backslashes stay as they are."""
    return "\\".join(show(part.encode("utf-8", "surrogateescape")) for part in text.split("\\"))


def shortened(raw: str) -> str:
    """A value as it was typed, on one line of bounded length."""
    joined = " ".join(part.strip() for part in raw.splitlines())
    return joined if len(joined) <= _LONGEST_VALUE else f"{joined[:_LONGEST_VALUE]}…"
