"""A cache of uv."""

import os

from tests.daemon.layout_trees import link, put

STAYS = (
    b"wheels-v5/pypi/x/x.msgpack",
    b"archive-v0/abc/m.py",
)


def build(root: bytes) -> None:
    """Buckets, with links between them."""
    put(root + b"/CACHEDIR.TAG")
    put(root + b"/.lock", b"")
    put(root + b"/archive-v0/abc/m.py")
    put(root + b"/wheels-v5/pypi/x/x.msgpack")
    link(root + b"/wheels-v5/pypi/x/x-1.0", b"../../../archive-v0/abc")


def usable(root, claim):
    """It is there."""
    return os.path.lexists(root + b"/" + claim.name)
