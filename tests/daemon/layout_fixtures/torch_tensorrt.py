"""Engines of Torch-TensorRT."""

import os

from tests.daemon.layout_trees import put

STAYS = (b"timing_cache.bin",)


def build(root: bytes) -> None:
    """Two engines, and something else."""
    put(root + b"/" + b"c" + b"a" * 51 + b"/blob.bin")
    put(root + b"/" + b"0f" * 32 + b"/blob.bin")
    put(root + b"/timing_cache.bin")


def usable(root, claim):
    """The engine is there."""
    return os.path.isfile(root + b"/" + claim.name + b"/blob.bin")
