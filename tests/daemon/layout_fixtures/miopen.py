"""Databases of two versions, one of them attached."""

import os

from tests.daemon.layout_trees import put

STAYS = (b"3.2.0.8ab93c1/gfx90a_104.ukdb", b"3.2.0.8ab93c1/gfx90a_104.ukdb-wal", b"3.2.0.8ab93c1/gfx.udb.txt")


def build(root: bytes) -> None:
    """The default place."""
    put(root + b"/2.20.0/gfx906_60.ukdb")
    build_one(root + b"/3.2.0.8ab93c1")


def build_one(root: bytes) -> None:
    """One version's directory."""
    for name in (b"gfx90a_104.ukdb", b"gfx90a_104.ukdb-wal", b"gfx90a_104.ukdb-shm", b"gfx1100_48.ukdb"):
        put(root + b"/" + name)
    put(root + b"/gfx.udb.txt")


def usable(root, claim):
    """All files of the database."""
    return all(os.path.isfile(root + b"/" + path) for path in claim.paths)
