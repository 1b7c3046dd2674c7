"""Operators of two versions, and cubins."""

import os

from tests.daemon.layout_trees import put

STAYS = (b"0.3.0/90a/generated/decode/a.cu", b"0.3.0/90a/cached_ops/tmp/decode.lock")


def build(root: bytes) -> None:
    """As two programs with different versions leave it."""
    for version in (b"0.2.14", b"0.3.0"):
        for name in (b"decode", b"prefill"):
            for each in (b"build.ninja", b"a.o", name + b".so"):
                put(root + b"/" + version + b"/90a/cached_ops/" + name + b"/" + each)
            put(root + b"/" + version + b"/90a/cached_ops/tmp/" + name + b".lock", b"")
            put(root + b"/" + version + b"/90a/generated/" + name + b"/a.cu")
    put(root + b"/cubins/hash/fmha/a.cubin")
    put(root + b"/cubins/hash/fmha/a.cubin.lock", b"")


def usable(root, claim):
    """All that ninja made is there."""
    return bool(os.listdir(root + b"/" + claim.name))
