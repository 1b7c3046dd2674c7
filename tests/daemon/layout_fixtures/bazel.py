"""A disk cache of Bazel."""

import os

from tests.daemon.layout_trees import put

STAYS = (
    b"ac/ab/abcd",
    b"cas/12/1234",
)


def build(root: bytes) -> None:
    """Results of actions and blobs."""
    for name in (b"ac/ab/abcd", b"cas/12/1234", b"gc/lock", b"tmp/x"):
        put(root + b"/" + name)


def usable(root, claim):
    """It is there."""
    return os.path.lexists(root + b"/" + claim.name)
