"""From what processes plainly use to the entries that are in use."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from cachewarden import evict
from cachewarden.enforce.survey import Survey
from cachewarden.report import Holder
from cachewarden.tree import Tree, split_path


class Sighting(Protocol):
    """A process uses `path`, relative to the location, which is `inode` there."""

    @property
    def path(self) -> bytes: ...
    @property
    def inode(self) -> evict.Inode: ...
    @property
    def holder(self) -> Holder: ...


class Surroundings(evict.Surroundings, Protocol):
    """What a pass asks of the machine, beside what an eviction asks."""

    def in_sight(self, below: bytes) -> Sequence[Sighting]:
        """What other processes use below an absolute path, as far as their paths tell."""


def in_use_at_sight(survey: Survey, surroundings: Surroundings) -> Mapping[int, tuple[Holder, ...]]:
    """Entries that processes plainly use, by index, with their holders, named.

    A path from /proc is believed only where it leads to the same inode here.
    """
    owners = _owners(survey)
    tree = Tree(survey.root_fd)
    found: dict[int, list[Holder]] = {}
    for each in surroundings.in_sight(survey.spec.path):
        status = tree.stat(each.path)
        if status is None or (status.st_dev, status.st_ino) != each.inode:
            continue
        for index in _nearest(owners, each.path):
            found.setdefault(index, []).append(each.holder)
    return {index: surroundings.name(_distinct(holders)) for index, holders in found.items()}


def _owners(survey: Survey) -> dict[bytes, tuple[int, ...]]:
    inventory = survey.inventory
    owners: dict[bytes, tuple[int, ...]] = {}
    for index, entry in enumerate(inventory.entries):
        owners |= dict.fromkeys(entry.claim.paths, (index,))
    owners |= {share.claim.path: share.owners for share in inventory.shares if share.claim is not None}
    return owners


def _nearest(owners: Mapping[bytes, tuple[int, ...]], path: bytes) -> tuple[int, ...]:
    while path:
        if path in owners:
            return owners[path]
        path = split_path(path)[0]
    return ()


def _distinct(holders: Iterable[Holder]) -> list[Holder]:
    return list(dict.fromkeys(holders))
