"""What the layouts of model stores do alike: entries with their guards, downloads that are not complete."""

import stat
from collections.abc import Iterable

from cachewarden.inventory import Claim, Foreign
from cachewarden.layouts.base import Context, open_elsewhere, read_names
from cachewarden.layouts.parts import Parts
from cachewarden.tree import Tree
from cachewarden_policies.policy import DAY
from cachewarden_policies.reasons import Cost, KeepReason


class Collector(Parts):
    """Parts of the directory `at` of a tree, with a guard for each entry."""

    def __init__(self, layout: str, what: str, tree: Tree, at: bytes) -> None:
        super().__init__(layout, what, at)
        self._tree = tree

    def claim(
        self,
        paths: Iterable[bytes],
        kind: str,
        cost: Cost = Cost.DOWNLOAD,
        keep: KeepReason | None = None,
        *,
        locks: tuple[bytes, ...] = (),
        husks: tuple[bytes, ...] = (),
    ) -> None:
        """An entry with the name of its first path; `keep` is the layout's own reason, if it has one."""
        paths = tuple(paths)
        keep = keep or self.guard(paths)
        self.claims.append(Claim(paths[0], paths, kind, self.layout, cost, keep, locks=locks, husks=husks))

    def protected(self, path: bytes, kind: str) -> None:
        """An entry that cannot be had again: it shows in lists with its size, and never goes."""
        self.claim((path,), kind, Cost.LOST, KeepReason.PROTECTED)

    def partial(self, paths: Iterable[bytes], context: Context) -> None:
        """A download that is not complete: an entry once it is abandoned, until then nobody's."""
        paths = tuple(paths)
        if is_abandoned(self._tree, paths, context):
            keep = self.guard(paths)
            claim = Claim(paths[0], paths, "partial", self.layout, Cost.DOWNLOAD, keep, partial=True)
            self.claims.append(claim)
        else:
            self.all_known(paths)

    def all_known(self, paths: Iterable[bytes]) -> None:
        """Several paths that belong to the cache and to no entry."""
        for path in paths:
            self.known(path)

    def inside(self, path: bytes) -> dict[bytes, int]:
        """The listing of a directory that is divided further; one that cannot be read stays as a whole."""
        names = read_names(self._tree, path)
        if names is None:
            self.foreign.append(Foreign(path))
        return names or {}

    def guard(self, paths: Iterable[bytes]) -> KeepReason | None:
        """Why an entry of these paths stays, as far as the names in it tell."""
        for path in paths:
            if open_elsewhere([path.rpartition(b"/")[2]]):
                return KeepReason.IN_USE
            names = read_names(self._tree, path) if self._tree.is_dir(path) else {}
            if names is None:
                return KeepReason.UNKNOWN
            if open_elsewhere(names):
                return KeepReason.IN_USE
        return None


def is_abandoned(tree: Tree, paths: Iterable[bytes], context: Context) -> bool:
    """Whether a partial download was left alone for so long that nobody goes on with it.

    What cannot be looked at counts as running.
    """
    limit = context.partial_max_idle
    return limit is not None and all(age_of(tree, path, context.now_ns) > limit for path in paths)


def is_young(tree: Tree, path: bytes, context: Context) -> bool:
    """Whether somebody may still be at work on something that is made in several steps."""
    limit = DAY if context.partial_max_idle is None else context.partial_max_idle
    return age_of(tree, path, context.now_ns) <= limit


def age_of(tree: Tree, path: bytes, now_ns: int) -> int:
    """Nanoseconds since the newest modification of a file, or of a directory and its direct children."""
    found = tree.stat(path)
    if found is None:
        return 0
    children = tree.children(path) if stat.S_ISDIR(found.st_mode) else []
    return now_ns - max([found.st_mtime_ns, *(each.st_mtime_ns for _, each in children)])
