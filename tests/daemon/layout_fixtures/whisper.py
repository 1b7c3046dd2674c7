"""Whisper's models, and files that are not its own."""

import os

from tests.daemon.layout_trees import put

STAYS = (b"finetuned.pt",)


def build(root: bytes) -> None:
    """Published models beside one of somebody's own."""
    for name in (b"tiny.pt", b"base.en.pt", b"large-v3-turbo.pt", b"finetuned.pt", b".DS_Store"):
        put(root + b"/" + name)


def usable(root, claim):
    """The file is there."""
    return os.path.isfile(root + b"/" + claim.name)
