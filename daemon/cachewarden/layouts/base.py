"""What every layout is, what it is told, and the few questions that all of them ask."""

import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from cachewarden.inventory import Split
from cachewarden.paths import show
from cachewarden.tree import Tree, split_path
from cachewarden_policies.policy import DAY
from cachewarden_policies.reasons import Cost, KeepReason

# The trash where it has to lie inside a location, and the sibling names that eviction falls back to on
# a full disk. A layout that took them for entries would evict what is being evicted.
TRASH = b".cachewarden-trash"
ASIDE = b".cw-"
_OURS = (TRASH, ASIDE)

# Left behind by desktops and by tools that mark caches; never worth a warning.
FURNITURE = frozenset({b".DS_Store", b"Thumbs.db", b"desktop.ini", b"CACHEDIR.TAG"})

_NAMES_IN_A_WARNING = 10
_REMEMBERED = 32
_STRANGE = 1000
_LARGE = 1000  # names from which on a listing is worth being kept from one split to the next


# What some other layout makes of a directory; None where no layout recognises it.
Nested = Callable[[Tree, bytes], Split | None]


def _nothing(_tree: Tree, _at: bytes) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Context:
    """What a layout must know beside the tree.

    `partial_max_idle` (ns) is the age from which a partial download is abandoned; None: none ever
    is. `keep_checkpoints` is how many of the newest training checkpoints of a series stay; None: all.
    `nested` divides a directory inside a container by whichever layout recognises it; `layouts.split`
    sets it, so that no layout needs to know the others.
    """

    now_ns: int
    partial_max_idle: int | None = DAY
    keep_checkpoints: int | None = None
    nested: Nested = _nothing


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of entry, for people: what a miss costs, and what such an entry is.

    `otherwise` is the cost where the condition that `what` names does not hold.
    """

    cost: Cost
    what: str
    otherwise: Cost | None = None

    @property
    def costs(self) -> tuple[Cost, ...]:
        """All costs that a claim of this kind may have."""
        return (self.cost,) if self.otherwise is None else (self.cost, self.otherwise)


class Layout(Protocol):
    """What we know about one kind of cache.

    `name` is what a configuration calls it. The rest is what the documentation's tables say, in
    Markdown: `shape`, what it is recognised by; `unit`, what one entry is; `locks`, which locks are held
    while one goes; `never`, what is never claimed for eviction; `checked`, the versions of the tools in
    which the facts were read; `kinds`, each kind of entry.
    """

    name: str
    shape: str
    unit: str
    locks: str
    never: str
    checked: str
    kinds: Mapping[str, Kind]

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """Whether the directory `at` has this layout's shape. Names of caches say nothing.

        Every directory of a container is asked about by every layout: look at the names in
        `tree.listing(at)` first, which is remembered, and at anything else only when they speak for it.
        """

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """The directory `at` divided into entries; all paths and names start with `at`."""


class LayoutTree(Tree):
    """A tree as layouts see it, for one split: without what eviction makes, and with a memory.

    Judging one directory asks for the same names several times; the last listings are kept, so that
    all questions about it get the same answer, and get it cheaply. `keeps` is for what was found out by
    looking at everything below a directory. Most children of a large folder look alike: names that no
    layout recognised without a look at anything else are asked about once.
    """

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree.root_fd, tree.parts)
        self.unreadable = tree.unreadable
        self.aside = tree.aside
        self.keeps: dict[bytes, KeepReason | None] = {}
        self._last: OrderedDict[bytes, dict[bytes, int]] = OrderedDict()
        self._strange: set[frozenset[tuple[bytes, int]]] = set()
        self._about: bytes | None = None
        self._looks = 0
        self._looked: set[bytes] = set()

    def first_of(self, layouts: Iterable[Layout], at: bytes) -> Layout | None:
        """The first of the layouts, always the same ones, that recognises the directory `at`."""
        if self.parts is not None and self.parts.recall("strange", at):
            return None
        names = frozenset(self.listing(at).items())
        if names in self._strange:
            return None
        around, self._looked = self._looked, set()
        self._about, looks = at, self._looks
        found = next((each for each in layouts if each.recognises(self, at)), None)
        if found is None and len(names) > _REMEMBERED:
            if self.parts is not None:
                self.parts.keep("strange", at, True, self._looked)
        elif found is None and self._looks == looks:
            if len(self._strange) >= _STRANGE:
                self._strange.clear()
            self._strange.add(names)
        self._looked |= around
        return found

    def _look(self, directory: bytes) -> None:
        self._looks += 1
        self._looked.add(directory)

    def children(self, path: bytes = b"") -> list[tuple[bytes, os.stat_result]]:
        """As `Tree.children`."""
        self._look(path)
        return super().children(path)

    def stat(self, path: bytes) -> os.stat_result | None:
        """As `Tree.stat`."""
        self._look(split_path(path)[0])
        return super().stat(path)

    def readlink(self, path: bytes) -> bytes | None:
        """As `Tree.readlink`."""
        self._look(split_path(path)[0])
        return super().readlink(path)

    def read(self, path: bytes, limit: int = 1 << 20) -> bytes | None:
        """As `Tree.read`."""
        self._look(split_path(path)[0])
        return super().read(path, limit)

    def listing(self, path: bytes = b"") -> dict[bytes, int]:
        """As `Tree.listing`, without the trash; the result is shared and not to be changed."""
        if path != self._about:
            self._look(path)
        if path in self._last:
            self._last.move_to_end(path)
            return self._last[path]
        known = self.parts.recall("names", path) if self.parts is not None else None
        if known is not None:
            return cast("dict[bytes, int]", known)
        holes = len(self.unreadable)
        found = super().listing(path)
        for name in [name for name in found if name.startswith(_OURS)]:
            del found[name]
            if name.startswith(ASIDE):
                self.aside.add(path)
        if len(self.unreadable) == holes:  # a failure must be seen by everybody who asks
            self._last[path] = found
            if self.parts is not None and len(found) >= _LARGE:
                self.parts.keep("names", path, found)
            if len(self._last) > _REMEMBERED:
                self._last.popitem(last=False)
        return found


def join(*parts: bytes) -> bytes:
    """Parts of a relative path put together; empty parts vanish."""
    return b"/".join(part for part in parts if part)


def read_names(tree: Tree, path: bytes) -> dict[bytes, int] | None:
    """The listing of a directory, or None when it is there and cannot be read."""
    holes = len(tree.unreadable)
    listing = tree.listing(path)
    return listing if len(tree.unreadable) == holes else None


def directories(listing: Mapping[bytes, int]) -> list[bytes]:
    """Names of the directories in a listing."""
    return [name for name, kind in listing.items() if kind == stat.S_IFDIR]


def files(listing: Mapping[bytes, int]) -> list[bytes]:
    """Names of the regular files in a listing."""
    return [name for name, kind in listing.items() if kind == stat.S_IFREG]


def open_elsewhere(names: Iterable[bytes]) -> bool:
    """Whether an NFS client holds a removed file open here.

    The client renames such a file to `.nfsXXXX` until its last close (nfs(5), "silly rename"). The
    opener may be on another machine, where no look into /proc finds it.
    """
    return any(name.startswith(b".nfs") for name in names)


def listed(names: Iterable[bytes]) -> str:
    """Names for one warning: the first few, and how many more."""
    shown = [show(name) for name in sorted(names)]
    rest = len(shown) - _NAMES_IN_A_WARNING
    text = ", ".join(shown[:_NAMES_IN_A_WARNING])
    return f"{text} and {rest} more" if rest > 0 else text
