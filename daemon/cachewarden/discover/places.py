"""From candidates to directories that exist, each once, whoever uses it."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from cachewarden.discover.environments import Candidate, Environment, candidates
from cachewarden.discover.homes import Home, directories
from cachewarden.discover.live import Live
from cachewarden.discover.reach import Ways
from cachewarden.discover.tools import Tool
from cachewarden.settings.patterns import matches

FOLDER = b".accelerate"
_MOST_CHILDREN = 1000  # of one home, in which a folder is looked for


@dataclass(slots=True)
class Place:
    """A directory that exists, by its path without links. `via` says how it was found: variables, `default`.

    `tools` is empty for a folder that was found by its name alone.
    """

    path: bytes
    tools: list[Tool] = field(default_factory=list)
    via: set[str] = field(default_factory=set)

    def is_in(self, other: "Place") -> bool:
        """Whether it lies inside another one."""
        return self.path.startswith(other.path + b"/")

    def join(self, other: "Place") -> None:
        """Take over what is known of another one: it is the same, or inside."""
        self.tools += [tool for tool in other.tools if tool not in self.tools]
        self.via |= other.via


@dataclass(slots=True)
class Places:
    """Collects places. What `ways` cannot reach is in its notices."""

    ways: Ways
    by_path: dict[bytes, Place] = field(default_factory=dict)
    _asked: dict[bytes, bytes | None] = field(default_factory=dict)
    _names: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def of_homes(self, homes: Iterable[Home]) -> None:
        """The default places of users, and folders by name in their homes and one level below."""
        for home in homes:
            for candidate in candidates(Environment(home.path)):
                self._add(candidate)
            self._folder(home.path)
            inside = [path for path, _ in directories(self.ways, home.path)]
            for path in inside[:_MOST_CHILDREN]:
                if not os.path.basename(path).startswith(b"."):
                    self._folder(path)

    def of_environment(self, environment: Environment) -> None:
        """What the variables of one environment say."""
        for candidate in candidates(environment):
            self._add(candidate)

    def of_processes(self, live: Live) -> None:
        """What live processes' variables say, and folders by name where they work, and above."""
        for environment, lens in live.environments.items():
            for candidate in candidates(environment):
                path = lens.here(candidate.path)
                if path is not None:
                    self._add(Candidate(path, candidate.tool, candidate.via))
        for directory in sorted(live.workplaces):
            self._folder(directory)

    def found(self) -> list[Place]:
        """All of them, outer ones before what is in them."""
        return [self.by_path[path] for path in sorted(self.by_path)]

    def _add(self, candidate: Candidate) -> None:
        parent, name = os.path.split(candidate.path)
        paths = [candidate.path]
        if b"*" in name:
            real = self._reached(parent)
            inside = directories(self.ways, real) if real is not None else ()
            paths = [path for path, _ in inside if matches(os.path.basename(path), name)]
        for path in paths:
            self._put(path, candidate.tool, candidate.via)

    def _folder(self, directory: bytes) -> None:
        self._put(os.path.join(directory, FOLDER), None, "name")

    def _put(self, path: bytes, tool: Tool | None, via: str) -> None:
        real = self._reached(path)
        inode = _inode(real) if real is not None else None
        if real is None or inode is None:
            return
        # One directory that is mounted twice has two names; the first that was found stands for both.
        real = self._names.setdefault(inode, real)
        place = Place(real, [tool] if tool else [], {via})
        self.by_path.setdefault(real, place).join(place)

    def _reached(self, path: bytes) -> bytes | None:
        if path not in self._asked:
            self._asked[path] = self.ways.directory(path)
        return self._asked[path]


def _inode(path: bytes) -> tuple[int, int] | None:
    """Device and inode; None for what is gone again."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
