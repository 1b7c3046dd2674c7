"""The layout of a location that is like no cache we know: each direct child is an entry."""

import stat
from collections.abc import Mapping

from cachewarden.inventory import Claim, Split
from cachewarden.layouts.base import Context, Kind, join, open_elsewhere, read_names
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost, KeepReason


class Plain:
    """Every child of the configured directory is one entry: directories, files, and links themselves."""

    name = "plain"
    shape = "anything"
    unit = "one direct child: a directory, a file, or a link itself"
    locks = "none"
    never = "the location itself; entries in which an NFS client holds a removed file open"
    checked = "Linux 6.18"
    kinds: Mapping[str, Kind] = {"plain": Kind(Cost.REBUILD, "a direct child")}

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """Any directory will do."""
        return tree.is_dir(at)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """One claim for each child."""
        return Split(
            self.name,
            tuple(_claim(tree, join(at, name), kind) for name, kind in tree.listing(at).items()),
        )


def _claim(tree: Tree, path: bytes, kind: int) -> Claim:
    return tree.part(("plain", kind), path, lambda: plain_claim(tree, path, kind))


def plain_claim(tree: Tree, path: bytes, kind: int) -> Claim:
    """The claim of one child (`kind`: its file type) about which nothing is known."""
    keep = KeepReason.IN_USE if open_elsewhere([path.rpartition(b"/")[2]]) else None
    if kind == stat.S_IFDIR:
        names = read_names(tree, path)
        if names is None:
            keep = KeepReason.UNKNOWN
        elif open_elsewhere(names):
            keep = KeepReason.IN_USE
    return Claim(path, (path,), cost=Cost.REBUILD, keep=keep)
