"""A model that somebody downloaded into a folder of his own, and went on working with."""

import os

from tests.daemon.layout_trees import put

STAYS = (
    b"model.safetensors",
    b"onnx/model.onnx",
    b"notes.txt",
    b".cache/huggingface/download/model.safetensors.metadata",
    b".cache/huggingface/download/model.safetensors.lock",
    b".cache/huggingface/download/aBc.0123.incomplete",
    b".cache/huggingface/CACHEDIR.TAG",
    b".cache/huggingface/.gitignore",
)


def build(root: bytes) -> None:
    """The files, and what huggingface_hub notes about them."""
    for name in STAYS:
        put(root + b"/" + name)


def usable(root, claim):
    """Nothing is an entry."""
    return os.path.lexists(root + b"/" + claim.name)
