"""A layout's claims as a tree of names, so that a walk knows at each step whose data it sees.

A *region* is one path of a claim, of shared data, of something foreign or of the trash, without the
regions inside it: every inode that a walk finds lies in exactly one, the nearest above it.
"""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum

from cachewarden.inventory import Split

ROOT = 0  # the number of the region that everything lies in which nothing else covers


class Kind(Enum):
    """Whose a region is; decides what is done with its sums."""

    TRASH = "trash"
    SHARED = "shared"
    CLAIM = "claim"
    FOREIGN = "foreign"


@dataclass(slots=True)
class Region:
    """`index` points into the split's claims, shared or foreign; -1 for the trash and for the rest.

    `path` is where it begins; `parent` the number of the region around it, None for the outermost.
    """

    kind: Kind
    index: int
    path: bytes = b""
    parent: int | None = None


@dataclass(slots=True)
class Node:
    """A name that the walk must look out for. `mounted`: another mount sits there."""

    region: int | None = None
    mounted: bool = False
    children: "dict[str, Node]" = field(default_factory=dict)

    def beneath(self, path: bytes) -> "Node":
        """The node at a relative path below this one, made where there is none yet."""
        here = self
        for part in os.fsdecode(path).split("/") if path else ():
            here = here.children.setdefault(part, Node())
        return here


def numbers(node: Node) -> Iterator[int]:
    """The regions that begin at a node or below it."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if here.region is not None:
            yield here.region
        waiting += here.children.values()


class Regions:
    """The numbered regions of a split, and the tree of names that leads to them.

    Where two of them name the same path, the more careful reading wins: trash, shared data, claim,
    foreign.
    """

    def __init__(self, split: Split, trash: Collection[bytes], mounts: Collection[bytes]) -> None:
        self.numbered = [Region(Kind.FOREIGN, -1)]
        self.tree = Node()
        for kind, index, path in _paths(split, trash):
            node = self.tree.beneath(path)
            if node.region is None:
                node.region = len(self.numbered)
                self.numbered.append(Region(kind, index, path))
        for path in mounts:
            self.tree.beneath(path).mounted = True
        self._find_parents()

    def around(self, number: int) -> Iterator[Region]:
        """A region and all regions around it, from the inside out."""
        here: int | None = number
        while here is not None:
            region = self.numbered[here]
            yield region
            here = region.parent

    def node(self, path: bytes) -> Node | None:
        """The node of a relative path, None where no region begins there or below."""
        here: Node | None = self.tree
        for part in os.fsdecode(path).split("/") if path else ():
            here = here.children.get(part) if here is not None else None
        return here

    def covering(self, path: bytes) -> int:
        """The number of the region that what lies at a relative path belongs to."""
        here: Node | None = self.tree
        number = ROOT if self.tree.region is None else self.tree.region
        for part in os.fsdecode(path).split("/") if path else ():
            here = here.children.get(part) if here is not None else None
            if here is None:
                break
            number = number if here.region is None else here.region
        return number

    def _find_parents(self) -> None:
        # A stack and not recursion: a layout may claim something a thousand levels down.
        waiting: list[tuple[Node, int]] = [(self.tree, ROOT)]
        while waiting:
            node, above = waiting.pop()
            if node.region is not None:
                self.numbered[node.region].parent = above
                above = node.region
            waiting += ((child, above) for child in node.children.values())


def _paths(split: Split, trash: Collection[bytes]) -> Iterator[tuple[Kind, int, bytes]]:
    for path in trash:
        yield Kind.TRASH, -1, path
    for index, shared in enumerate(split.shared):
        for path in (shared.path, *shared.companions):
            yield Kind.SHARED, index, path
    for index, claim in enumerate(split.claims):
        for path in claim.paths:
            yield Kind.CLAIM, index, path
    for index, foreign in enumerate(split.foreign):
        yield Kind.FOREIGN, index, foreign.path
