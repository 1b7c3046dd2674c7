"""Packages of conda."""

import os

from tests.daemon.layout_trees import put

STAYS = (
    b"urls.txt",
    b"numpy-2.0/info/index.json",
)


def build(root: bytes) -> None:
    """An archive and what was unpacked from it."""
    put(root + b"/urls.txt")
    put(root + b"/numpy-2.0.conda")
    put(root + b"/numpy-2.0/info/index.json", b"{}")


def usable(root, claim):
    """It is there."""
    return os.path.lexists(root + b"/" + claim.name)
