"""Code of models and data sets, as transformers, diffusers and datasets copy it."""

import os

from tests.daemon.layout_trees import put

STAYS = (
    b"transformers_modules/org/model/0123/modeling.py",
    b"datasets_modules/datasets/d/d.py",
    b"__init__.py",
    b"mine/code.py",
)


def build(root: bytes) -> None:
    """Packages with what makes them packages, and somebody's own."""
    for name in (*STAYS, b"transformers_modules/__init__.py", b"diffusers_modules/git/pipe.py"):
        put(root + b"/" + name)


def usable(root, claim):
    """Nothing is an entry."""
    return os.path.lexists(root + b"/" + claim.name)
