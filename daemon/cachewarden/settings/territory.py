"""From configured patterns to the locations in force: who gets a directory that several could have.

An overlap that appears while the service runs refuses the new match only. So literal paths come
first, then what was in force before, then new matches; among equals the order of the configuration
and of the names decides, and the same situation always gives the same answer.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cachewarden.paths import show
from cachewarden.settings.find import Match, Matches, find
from cachewarden.settings.patterns import overlap
from cachewarden.settings.places import home_directories
from cachewarden.settings.values import LocationPattern, Settings
from cachewarden.spec import LocationSpec, Refusal, Territory


def territory(settings: Settings, known: Territory | None = None) -> Territory:
    """All locations in force at this moment, looked up one after the other.

    `known` is what was in force before. Blocks as long as the slowest filesystem: the service uses
    `find_location` in a thread per location instead, and then `assemble`.
    """
    homes = home_directories(settings.home)
    return assemble(settings, {each.name: find_location(each, homes) for each in settings.locations}, known)


def find_location(location: LocationPattern, homes: frozenset[bytes]) -> Matches:
    """What one location's patterns match right now; `homes` is `home_directories(settings.home)`.

    Blocks on a filesystem that does not answer, as `home_directories` may too.
    """
    return find(location, homes, frozenset({0, os.geteuid()}))


def watch_roots(settings: Settings) -> set[bytes]:
    """The directories in which a new match can appear, each to be watched without what is below it."""
    homes = home_directories(settings.home)
    return {path for each in settings.locations for path in find_location(each, homes).watch}


def assemble(settings: Settings, matches: Mapping[str, Matches], known: Territory | None = None) -> Territory:
    """The locations in force, from what was found. Touches nothing.

    A location that is not in `matches` (its filesystem does not answer) keeps what it had in `known`.
    """
    old = known or Territory()
    before = {(spec.name, spec.path) for spec in old.locations}
    candidates: list[tuple[int, int, bytes, LocationPattern, Match]] = []
    chosen = _Chosen((settings.daemon.state_dir, settings.daemon.runtime_dir))
    for index, location in enumerate(settings.locations):
        found = matches.get(location.name)
        if found is None:
            chosen.keep(location, old)
            continue
        for match in found.found:
            rank = 0 if match.literal else 1 if (location.name, match.path) in before else 2
            candidates.append((rank, index, match.path, location, match))
        chosen.missing += [replace(location.template, path=path) for path in found.missing]
        chosen.refused += [Refusal(location.name, path, reason) for path, reason in found.refused]
    for *_, location, match in sorted(candidates, key=lambda each: each[:3]):
        chosen.offer(location, match)
    order = {location.name: index for index, location in enumerate(settings.locations)}
    return Territory(
        locations=tuple(sorted(chosen.locations, key=lambda spec: (order[spec.name], spec.path))),
        pools=settings.pools,
        refused=tuple(chosen.refused),
        missing=tuple(chosen.missing),
    )


@dataclass(slots=True)
class _Chosen:
    """Takes candidates one by one, and refuses those that overlap what it has."""

    own: tuple[bytes, ...]
    locations: list[LocationSpec] = field(default_factory=list)
    missing: list[LocationSpec] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    _taken: dict[bytes, str] = field(default_factory=dict)  # path -> name of its location
    _above: dict[bytes, bytes] = field(default_factory=dict)  # directory -> a location below it
    _identities: dict[tuple[int, int], tuple[bytes, str]] = field(default_factory=dict)

    def offer(self, location: LocationPattern, match: Match) -> None:
        """One match: taken, or refused with the reason."""
        if self._taken.get(match.path) == location.name:
            return  # two patterns of one location may match the same directory
        reason = self._objection(match.path, match.identity)
        if reason is not None:
            self.refused.append(Refusal(location.name, match.named, reason))
            return
        self._identities[match.identity] = (match.path, location.name)
        self._take(replace(location.template, path=match.path))

    def keep(self, location: LocationPattern, old: Territory) -> None:
        """Everything that a location had, under its present configuration."""
        for spec in old.locations:
            if spec.name == location.name and self._objection(spec.path, None) is None:
                self._take(replace(location.template, path=spec.path))
        self.missing += [
            replace(location.template, path=spec.path) for spec in old.missing if spec.name == location.name
        ]

    def _take(self, spec: LocationSpec) -> None:
        self.locations.append(spec)
        self._taken[spec.path] = spec.name
        for directory in _directories_above(spec.path):
            self._above.setdefault(directory, spec.path)

    def _objection(self, path: bytes, identity: tuple[int, int] | None) -> str | None:
        # Thousands of homes: by look-up, and not each against each.
        near = [each for each in (path, *_directories_above(path)) if each in self._taken]
        near += [self._above[path]] if path in self._above else []
        if near:
            return f"{overlap(path, near[0])} of location {self._taken[near[0]]}"
        if identity is not None and identity in self._identities:
            other, name = self._identities[identity]
            return f"is the same directory as {show(other)} of location {name}, mounted twice"
        for directory in self.own:
            if directory == path or directory.startswith(path + b"/"):
                return f"contains the service's own directory {show(directory)}"
        return None


def _directories_above(path: bytes) -> list[bytes]:
    """All directories that `path` lies in, the nearest first, without `/`."""
    parts = path.split(b"/")
    return [b"/".join(parts[:end]) for end in range(len(parts) - 1, 1, -1)]
