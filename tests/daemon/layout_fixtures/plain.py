"""Directories, a file, a link, and what eviction itself leaves."""

import os

from tests.daemon.layout_trees import ODD, link, put

STAYS = ()


def build(root: bytes) -> None:
    """Children of every type."""
    for name in (*ODD, b"one", b"two"):
        put(root + b"/" + name + b"/f")
    put(root + b"/file")
    link(root + b"/away", b"/nowhere")
    put(root + b"/.cachewarden-trash/p-1/f")
    put(root + b"/.cw-m1/f")


def usable(root, claim):
    """It is there."""
    return os.path.lexists(root + b"/" + claim.name)
