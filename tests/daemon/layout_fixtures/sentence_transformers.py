"""The older cache of sentence-transformers, with a model that was trained."""

import os

from tests.daemon.layout_trees import put

STAYS = (b"my_model/modules.json", b"cloned_model/modules.json", b"notes")


def build(root: bytes) -> None:
    """Two downloads, a model saved by somebody, a clone, a stranger."""
    for name in (
        b"sentence-transformers_all-MiniLM-L6-v2",
        b"intfloat_e5-base",
        b"my_model",
        b"cloned_model",
    ):
        put(root + b"/" + name + b"/modules.json", b"[]")
        put(root + b"/" + name + b"/0_Transformer/pytorch_model.bin")
        if name != b"my_model":
            put(root + b"/" + name + b"/.gitattributes")
    put(root + b"/cloned_model/.git/HEAD")
    put(root + b"/notes")


def usable(root, claim):
    """`modules.json` is there, and what it names."""
    path = root + b"/" + claim.name
    return os.path.isfile(path + b"/modules.json") and os.path.isfile(
        path + b"/0_Transformer/pytorch_model.bin"
    )
