"""A cache of the CUDA driver."""

import os

from tests.daemon.layout_trees import put

STAYS = (b"index", b"3/f/f19a")


def build(root: bytes) -> None:
    """An index and what it names."""
    put(root + b"/index")
    put(root + b"/3/f/f19a")
    put(root + b"/a/0/00b1")


def usable(root, claim):
    """All of it is there."""
    return all(os.path.exists(root + b"/" + path) for path in claim.paths)
