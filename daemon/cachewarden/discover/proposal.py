"""The configuration that is proposed: one location for each kind of cache, places of many users as globs.

It has to load, as a file of its own and beside what is configured: names are new, no two paths overlap, and
report only, so that it can be tried as it is.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cachewarden.discover.finding import Found
from cachewarden.discover.homes import Home, directories
from cachewarden.discover.reach import Ways
from cachewarden.paths import show
from cachewarden.settings.layers import toml_text
from cachewarden.units import format_size

FOLDER_NAME = "accelerate"  # the location of folders that were found by their name
_HEADER = """\
# Proposed by `cachewarden discover`. Report only: nothing goes while `enforce = false` stands there.
# 1. Look: `cachewarden --config FILE plan` says what would go, and why.
# 2. Set limits: max_size in [policies.{policy}], or in a location.
# 3. Turn on: `cachewarden --config FILE enforce NAME` shows what would go, asks, and changes that key here.
"""


@dataclass(frozen=True, slots=True)
class Namer:
    """Gives names that no other location or policy has."""

    taken: Collection[str]

    def name(self, wanted: str) -> str:
        """`wanted`, or with a number where the configuration has that name already."""
        number, name = 2, wanted
        while name in self.taken:
            name, number = f"{wanted}-{number}", number + 1
        return name


def location_name(tools: Sequence[str], namer: Namer) -> str:
    """The name of the location of a place with these tools."""
    return namer.name(tools[0] if tools else FOLDER_NAME)


def toml(
    proposed: Mapping[str, Sequence[Found]],
    policy: str,
    preset: str,
    users: Sequence[Home],
    ways: Ways,
) -> str:
    """The file's text. `proposed` has the places of each location, by its name."""
    parts = [_HEADER.format(policy=policy), f"[policies.{policy}]\nextends = {toml_text(preset)}\n"]
    for name, places in sorted(proposed.items()):
        patterns = [show(pattern) for pattern in _patterns(places, users, ways)]
        path = toml_text(patterns[0]) if len(patterns) == 1 else _lines(patterns)
        parts.append(
            f"# {_told(places)}\n[locations.{name}]\npath = {path}\n"
            f"policy = {toml_text(policy)}\nenforce = false\n"
        )
    return "\n".join(parts)


def _lines(patterns: Sequence[str]) -> str:
    return "".join(["[\n", *(f"    {toml_text(pattern)},\n" for pattern in patterns), "]"])


def _told(places: Sequence[Found]) -> str:
    titles = (
        ", ".join(dict.fromkeys(title for place in places for title in place.titles))
        or "folders called .accelerate"
    )
    size = format_size(sum(place.bytes for place in places))
    count = f"{len(places)} places" if len(places) > 1 else "1 place"
    layouts = ", ".join(sorted({place.layout for place in places}))
    return f"{titles}: {count}, {size}, layout {layouts}"


def _patterns(places: Sequence[Found], users: Sequence[Home], ways: Ways) -> list[bytes]:
    """Paths, and globs in the place of several users' equal paths, sorted."""
    found: list[bytes] = []
    by_glob: dict[bytes, list[Found]] = {}
    for place in places:
        glob = None if place.by_name else _glob_of(place.path, users)
        by_glob.setdefault(glob or b"", []).append(place)
    for glob, mine in by_glob.items():
        paths = {place.path for place in mine}
        # Whatever else the glob meant would become a location that nobody has looked at.
        if glob and len(paths) > 1 and _meant(glob, ways) == paths:
            found.append(glob)
        else:
            found += [_literal(path) for path in paths]
    return sorted(found)


def _glob_of(path: bytes, users: Sequence[Home]) -> bytes | None:
    """`/home/*/REST` for a path in somebody's home; `/tmp/NAME_*` for what has a user's name in it."""
    for home in users:
        if path.startswith(home.path + b"/"):
            return b"%b/*%b" % (_literal(os.path.dirname(home.path)), _literal(path[len(home.path) :]))
    directory, name = os.path.split(path)
    head, underscore, rest = name.partition(b"_")
    return b"%b/%b_*" % (_literal(directory), _literal(head)) if underscore and rest else None


def _meant(glob: bytes, ways: Ways) -> set[bytes]:
    """The directories that a glob of one star means now."""
    before, _, after = glob.partition(b"*")
    parent, head = os.path.split(_unescaped(before))
    found = set()
    for path, _ in directories(ways, parent):
        name = os.path.basename(path)
        if name.startswith(head) and not (not head and name.startswith(b".")):
            real = ways.directory(path + _unescaped(after))
            if real is not None:
                found.add(real)
    return found


def _literal(path: bytes) -> bytes:
    """A path in which the characters of globs stand for themselves."""
    return b"".join(b"[%c]" % byte if byte in b"*?[" else b"%c" % byte for byte in path)


def _unescaped(path: bytes) -> bytes:
    for byte in b"*?[":
        path = path.replace(b"[%c]" % byte, b"%c" % byte)
    return path
