"""Kernels of the jiterator."""

import os

from tests.daemon.layout_trees import put

STAYS = (b"notes.txt",)


def build(root: bytes) -> None:
    """Two kernels for one GPU, one for another vendor's."""
    for start in (b"gcd_kernel_arch8.0", b"lcm_kernel_arch8.0", b"gcd_kernel_archgfx90a:sramecc+"):
        put(root + b"/" + start + b"_nvrtc12.4_sass_9134_" + b"0a" * 20)
    put(root + b"/notes.txt")


def usable(root, claim):
    """The file is there."""
    return os.path.isfile(root + b"/" + claim.name)
