"""From the directories in which a name came or went to what may be different now."""

import os
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from cachewarden.kernel.openat2 import open_path_on_mount
from cachewarden.scan.directories import Directories, Seen
from cachewarden.scan.regions import Regions, numbers
from cachewarden.scan.remembered.value import Remembered
from cachewarden.tree import split_path


@dataclass(frozen=True, slots=True)
class Changed:
    """`dirty`: directories in which a name came or went, or a file was written. `same`: directories in
    those that are as they were, so that what changed in them would be told by itself. `around`: what the
    dirty ones lie in, themselves included.
    """

    dirty: frozenset[bytes] = frozenset()
    same: frozenset[bytes] = frozenset()
    around: frozenset[bytes] = frozenset()

    def touches(self, path: bytes) -> bool:
        """Whether what is at `path` or anywhere below it may be different now."""
        return path in self.around or self._is_other(path)

    def touches_names(self, path: bytes) -> bool:
        """Whether the names in the directory at `path` may be others now."""
        return path in self.dirty or self._is_other(path)

    def _is_other(self, path: bytes) -> bool:
        """Whether something else may have come to `path`."""
        while path:
            parent = split_path(path)[0]
            if parent in self.dirty and path not in self.same:
                return True
            path = parent
        return False

    def regions(self, regions: Regions) -> set[int]:
        """The regions that it may concern, by number."""
        found: set[int] = set()
        for path in self.dirty:
            found.add(regions.covering(path))
            node = regions.node(path)
            for name, child in node.children.items() if node is not None else ():
                if os.path.join(path, os.fsencode(name)) not in self.same:
                    found.update(numbers(child))
        return found


def changes(known: Remembered, root_fd: int, dirty: Collection[bytes]) -> Changed:
    """What `dirty` directories say.

    A directory may have been moved away, changed where nobody looks, and moved back: the one that has its
    name is told then, and its own times differ. So of each dirty directory the directories in it
    are compared with what they were, and what is not the same has changed with all that is below it.
    """
    assert known.tally.directories is not None
    same: set[bytes] = set()
    for parent, children in _children(known.regions, known.tally.directories, dirty).items():
        if children:
            same.update(_still(root_fd, parent, children))
    return Changed(frozenset(dirty), frozenset(same), frozenset(_around(dirty)))


def _around(paths: Collection[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for path in paths:
        here = path
        while here not in found:
            found.add(here)
            here = split_path(here)[0]
    return found


def _children(
    regions: Regions, directories: Directories, dirty: Collection[bytes]
) -> dict[bytes, list[Seen]]:
    """The directories that were seen directly in each of the dirty ones."""
    found: dict[bytes, list[Seen]] = {path: [] for path in dirty}
    within: dict[int, set[bytes]] = defaultdict(set)
    for path in dirty:
        within[regions.covering(path)].add(path)
        node = regions.node(path)
        for child in node.children.values() if node is not None else ():
            if child.region is not None:
                seen = directories.first(child.region)
                if seen is not None and seen.path == regions.numbered[child.region].path:
                    found[path].append(seen)
    for number, paths in within.items():
        for seen in directories.of(number):
            parent = split_path(seen.path)[0]
            if parent in paths and seen.path and seen.path != regions.numbered[number].path:
                found[parent].append(seen)
    return found


def _still(root_fd: int, parent: bytes, children: list[Seen]) -> Iterator[bytes]:
    """Paths of those children that are what they were."""
    try:
        fd = open_path_on_mount(root_fd, parent)
    except OSError:
        return
    try:
        for seen in children:
            try:
                found = os.stat(split_path(seen.path)[1], dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue
            if seen.is_still(found):
                yield seen.path
    finally:
        os.close(fd)
