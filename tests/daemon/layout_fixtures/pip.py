"""A cache of pip."""

import os

from tests.daemon.layout_trees import put

STAYS = (
    b"http-v2/a/b/c/d/e/abcde",
    b"http-v2/a/b/c/d/e/abcde.body",
)


def build(root: bytes) -> None:
    """Answers and wheels."""
    put(root + b"/http-v2/a/b/c/d/e/abcde")
    put(root + b"/http-v2/a/b/c/d/e/abcde.body")
    put(root + b"/wheels/00/11/x/w.whl")
    put(root + b"/selfcheck/abc", b"{}")


def build_old(root: bytes) -> None:
    """As older versions wrote it."""
    put(root + b"/http/a/b/c/d/e/abcde")
    put(root + b"/wheels/00/11/x/w.whl")


def usable(root, claim):
    """It is there."""
    return os.path.lexists(root + b"/" + claim.name)
