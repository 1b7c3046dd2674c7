"""The user's directory of numba, and one directory in it."""

import os

from tests.daemon.layout_trees import put

STAYS = (b"notes.txt",)


def functions(folder: bytes) -> None:
    """One function with two overloads for one interpreter, and one for another."""
    for name in (b"mod.f-12.py311.nbi", b"mod.f-12.py311.1.nbc", b"mod.f-12.py311.2.nbc"):
        put(folder + b"/" + name)
    for name in (b"mod.f-12.py312.nbi", b"mod.f-12.py312.1.nbc", b"mod.gone-3.py311.1.nbc"):
        put(folder + b"/" + name)
    put(folder + b"/mod.f-12.py311.nbi.tmp.0123456789abcdef")


def build(root: bytes) -> None:
    """Two sources."""
    functions(root + b"/src_" + b"0a" * 20)
    functions(root + b"/lib_" + b"1b" * 20)
    put(root + b"/notes.txt")


def build_one(root: bytes) -> None:
    """One source."""
    functions(root)
    put(root + b"/notes.txt")


def usable(root, claim):
    """Index and data as they were; a missing one is a miss, data without its index a trap."""
    return all(os.path.isfile(root + b"/" + path) for path in claim.paths)
