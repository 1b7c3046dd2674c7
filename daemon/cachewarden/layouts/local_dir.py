"""Folders into which somebody downloaded a model or data set (`local_dir`, `hf download --local-dir`).

The files are ordinary files of their owner, who may have changed them; what huggingface_hub notes about
them lies apart, in `.cache/huggingface/download` and `upload` (huggingface_hub 2.4, `_local_folder.py`). Its
CACHEDIR.TAG there does not make the folder a cache.
"""

import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, join
from cachewarden.layouts.parts import Parts
from cachewarden.tree import Tree

BELOW = b".cache/huggingface"
_KINDS = (b"download", b"upload")


class LocalDirLayout:
    """No entries: all of it stays, and is counted."""

    name = "local_dir"
    shape = "`.cache/huggingface/download` or `upload` in it"
    unit = "none: only reported"
    locks = "none"
    never = "all of it: somebody's own files, and what is known of them"
    checked = "huggingface_hub 2.4.0"
    kinds: Mapping[str, Kind] = {}

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A directory with huggingface_hub's notes about the files in it."""
        return is_local(tree, at, tree.listing(at))

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """Everything is foreign, and nothing of it strange."""
        parts = Parts(self.name, "a downloaded folder", at)
        for name in tree.listing(at):
            parts.known(join(at, name))
        return parts.split()


def is_local(tree: Tree, path: bytes, listing: Mapping[bytes, int]) -> bool:
    """Whether the directory `path`, whose names are `listing`, is such a folder."""
    if listing.get(b".cache") != stat.S_IFDIR:
        return False
    return speaks_of_downloads(tree.listing(join(path, BELOW)))


def speaks_of_downloads(listing: Mapping[bytes, int]) -> bool:
    """Whether these are the names in a `.cache/huggingface` that belongs to the folder around it.

    That of a user's home has caches in it, and neither of these.
    """
    return any(listing.get(name) == stat.S_IFDIR for name in _KINDS)
