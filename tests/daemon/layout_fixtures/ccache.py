"""A cache of ccache."""

import os

from tests.daemon.layout_trees import put

STAYS = (
    b"0/a/stats",
    b"ccache.conf",
)


def build(root: bytes) -> None:
    """Two levels of directories, with their sums."""
    put(root + b"/ccache.conf")
    for name in (b"0/a/stats", b"0/a/1234R", b"f/stats", b"tmp/x"):
        put(root + b"/" + name)


def usable(root, claim):
    """It is there."""
    return os.path.lexists(root + b"/" + claim.name)
