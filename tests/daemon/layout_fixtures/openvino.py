"""Compiled models of OpenVINO."""

import os

from tests.daemon.layout_trees import put

STAYS = (b"model.xml", b"model.blob")


def build(root: bytes) -> None:
    """Two blobs beside a user's model."""
    for name in (b"10392847561029384756.blob", b"84756102938475.blob", b"model.xml", b"model.blob"):
        put(root + b"/" + name)


def usable(root, claim):
    """The file is there."""
    return os.path.isfile(root + b"/" + claim.name)
