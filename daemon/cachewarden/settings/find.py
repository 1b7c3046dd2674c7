"""Finding what a location's patterns match right now: by descriptor, no link followed unseen.

This is the part that touches filesystems and may therefore block on a dead one; it works on one
location, so that the caller can give each its own thread. What the matches become is decided in
`territory`, which touches nothing.
"""

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cachewarden.mountinfo import own_mounts
from cachewarden.paths import show
from cachewarden.settings.patterns import is_glob, matches, matches_path
from cachewarden.settings.places import is_home_of, unfit
from cachewarden.settings.values import LocationPattern
from cachewarden.tree import ABSENT

_MOST_LINKS = 40  # as the kernel: MAXSYMLINKS, path_resolution(7)
_TRASH = b".cachewarden-trash"
_PATH = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Match:
    """A path that a pattern matched: as it is called, and (`path`) as it is called without any link.

    `identity` is its (device, inode), by which a second name of one directory is recognised.
    """

    named: bytes
    path: bytes
    identity: tuple[int, int]
    literal: bool


@dataclass(slots=True)
class Matches:
    """All that one location's patterns found.

    `missing` are literal paths that are not there; `refused` are matches that cannot be a location,
    with the reason. A new match can appear only in a directory of `watch` (not below it).
    """

    found: list[Match] = field(default_factory=list)
    missing: list[bytes] = field(default_factory=list)
    refused: list[tuple[bytes, str]] = field(default_factory=list)
    watch: set[bytes] = field(default_factory=set)


class _Part(NamedTuple):
    """A component still to come. `told` is false for those of a link's target: nobody typed them."""

    name: bytes
    glob: bool = False
    told: bool = True


@dataclass(frozen=True, slots=True)
class _Step:
    """A way half gone: `real` (without links) is reached, under the name `named`."""

    real: bytes
    named: bytes
    parts: tuple[_Part, ...]
    globbed: bool = False
    links: int = 0

    def whole(self) -> bytes:
        """The name of where this way leads to, or would."""
        told = [part.name for part in self.parts if part.told]
        return b"/".join((self.named, *told)) or b"/"


def find(location: LocationPattern, homes: frozenset[bytes], trusted: Collection[int]) -> Matches:
    """What the patterns of one location match. Raises OSError only where /proc cannot be read.

    `homes` can be no location. A link in the middle of a path is followed where only users of
    `trusted` can have put it; the location itself, or a user's link on the way to it, only into
    `follow_into` and only where link and target have one owner.
    """
    finder = _Finder(location, homes, trusted)
    for pattern in location.patterns:
        parts = tuple(_Part(part, is_glob(part)) for part in pattern.split(b"/")[1:] if part)
        finder.follow(_Step(b"", b"", parts))
    return finder.matches


class _Finder:
    def __init__(self, location: LocationPattern, homes: frozenset[bytes], trusted: Collection[int]) -> None:
        self.matches = Matches()
        self._todo: list[_Step] = []
        self._homes = homes
        self._trusted = trusted
        self._follow_into = tuple(os.fsencode(each) for each in location.template.follow_into)
        self._mounts = {mount.point for mount in own_mounts()} if location.template.must_be_mount else None

    def follow(self, start: _Step) -> None:
        """All ways that begin with this step. A list and not recursion: nothing depends on the depth."""
        self._todo.append(start)
        while self._todo:
            step = self._todo.pop()
            try:
                fd = _open(step.real)
                try:
                    self._enter(step, fd)
                finally:
                    os.close(fd)
            except OSError as error:
                self._stopped(step, error)

    def _enter(self, step: _Step, fd: int) -> None:
        if not step.parts:
            self._arrive(step, os.fstat(fd))
            return
        part, rest = step.parts[0], step.parts[1:]
        if part.glob:
            self.matches.watch.add(step.real or b"/")
            # Last in, first out: reversed, so that matches come in the order of their names.
            for name in reversed(_names(fd, part.name)):
                self._todo.append(replace(step, parts=(_Part(name), *rest), globbed=True))
        elif part.name == b"..":  # of a link's target; `real` has no links, so this is the kernel's answer
            self._todo.append(replace(step, real=os.path.dirname(step.real).rstrip(b"/"), parts=rest))
        else:
            self._component(step, fd, part, rest)

    def _component(self, step: _Step, fd: int, part: _Part, rest: tuple[_Part, ...]) -> None:
        if not rest:
            self.matches.watch.add(step.real or b"/")
        status = os.stat(part.name, dir_fd=fd, follow_symlinks=False)
        named = b"%b/%b" % (step.named, part.name) if part.told else step.named
        after = replace(step, real=b"%b/%b" % (step.real, part.name), named=named, parts=rest)
        if stat.S_ISDIR(status.st_mode):
            self._todo.append(after)
        elif stat.S_ISLNK(status.st_mode):
            self._link(step, after, fd, status)
        elif not (step.globbed and rest):  # a file beside the directories that a glob passes is nothing odd
            self._refuse(after, "is not a directory")

    def _link(self, before: _Step, after: _Step, fd: int, link: os.stat_result) -> None:
        if before.links >= _MOST_LINKS:
            self._refuse(after, "is behind too many links")
        elif after.parts and self._is_trusted(link, os.fstat(fd)):
            target = os.readlink(before.parts[0].name, dir_fd=fd)
            parts = tuple(_Part(part, told=False) for part in target.split(b"/") if part not in (b"", b"."))
            real = b"" if target.startswith(b"/") else before.real
            self._todo.append(replace(after, real=real, parts=parts + after.parts, links=before.links + 1))
        else:
            self._follow_into_target(after, link)

    def _is_trusted(self, link: os.stat_result, directory: os.stat_result) -> bool:
        """Whether nobody else can have put the link there; the sticky bit protects it in /tmp."""
        writable = directory.st_mode & 0o022 and not directory.st_mode & stat.S_ISVTX
        return link.st_uid in self._trusted and directory.st_uid in self._trusted and not writable

    def _follow_into_target(self, after: _Step, link: os.stat_result) -> None:
        try:
            target = os.path.realpath(after.real, strict=True)
            owner = os.stat(target).st_uid
        except OSError as error:
            self._refuse(after, f"is a link that leads nowhere: {error.strerror}")
            return
        if owner != link.st_uid:
            # Otherwise a user could point at somebody else's files and have them evicted.
            self._refuse(after, f"is a link of user {link.st_uid} to {show(target)} of user {owner}")
        elif not any(matches_path(target, pattern) for pattern in self._follow_into):
            self._refuse(after, f"is a link to {show(target)}, which follow_into does not allow")
        else:
            self._todo.append(replace(after, real=target, links=after.links + 1))

    def _arrive(self, step: _Step, status: os.stat_result) -> None:
        reason = unfit(step.real or b"/", self._homes) or unfit(step.whole(), self._homes)
        if reason is None and is_home_of(step.real, status.st_uid):
            reason = "is a home directory itself"
        if reason is not None:
            self._refuse(step, reason)
        elif self._mounts is not None and step.real not in self._mounts:
            self.matches.missing.append(step.whole())
        else:
            identity = (status.st_dev, status.st_ino)
            self.matches.found.append(Match(step.whole(), step.real, identity, not step.globbed))

    def _stopped(self, step: _Step, error: OSError) -> None:
        if error.errno not in ABSENT:
            self._refuse(step, f"cannot be looked at: {error.strerror}")
            return
        # Whatever is missing on the way appears in the directory that was reached.
        self.matches.watch.add(step.real or b"/")
        if not step.globbed and not any(part.glob for part in step.parts):
            self.matches.missing.append(step.whole())

    def _refuse(self, step: _Step, reason: str) -> None:
        self.matches.refused.append((step.whole(), reason))


def _open(path: bytes) -> int:
    """A descriptor of a directory, for looking things up only. No component is followed; OSError."""
    here = os.open(b"/", _PATH)
    for part in path.split(b"/")[1:]:
        try:
            below = os.open(part, _PATH, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


def _names(fd: int, pattern: bytes) -> list[bytes]:
    """The names in a directory that fit, sorted. Our own trash is no match of anything."""
    listed = os.open(b".", _LIST, dir_fd=fd)
    try:
        names = [os.fsencode(name) for name in os.listdir(listed)]
    finally:
        os.close(listed)
    return sorted(name for name in names if matches(name, pattern) and name != _TRASH)
