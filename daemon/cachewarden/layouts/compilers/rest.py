"""What lies between the entries of a cache with several levels."""

import stat

from cachewarden.layouts.base import join, read_names
from cachewarden.layouts.parts import Parts
from cachewarden.tree import Tree


def name_the_rest(tree: Tree, at: bytes, found: Parts) -> None:
    """Make strangers of everything below `at` that is in no part of `found` and has none below it.

    Directories that are empty or cannot be read are no strangers: they may be the cache's own.
    """
    covered = {path for claim in found.claims for path in claim.paths}
    covered |= {each.path for each in found.foreign}
    around: set[bytes] = set()
    for path in covered:
        parent = path.rpartition(b"/")[0]
        while parent and parent not in around:
            around.add(parent)
            parent = parent.rpartition(b"/")[0]
    pending = [at]
    while pending:
        here = pending.pop()
        for name, kind in tree.listing(here).items():
            path = join(here, name)
            if path in around:
                pending.append(path)
            elif path in covered:
                continue
            elif kind == stat.S_IFDIR and not read_names(tree, path):
                found.known(path)
            else:
                found.stranger(path)
