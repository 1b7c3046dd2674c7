"""SGLang's cache with all the caches that it sends there."""

import os

from tests.daemon.layout_fixtures import cuda_compute_cache, flashinfer, inductor, triton
from tests.daemon.layout_trees import put

STAYS = (b"cute_aot/a.o", b"nv/index", b"jit/cuda/mod/build-k/.lock")


def build(root: bytes) -> None:
    """Everything."""
    triton.build(root + b"/triton")
    inductor.build(root + b"/inductor")
    cuda_compute_cache.build(root + b"/nv")
    flashinfer.build(root + b"/.cache/flashinfer")
    put(root + b"/torch_compile_cache/0a1b/rank_0/model.py")
    put(root + b"/cute_aot/a.o")
    put(root + b"/tilelang/a.so")
    build_modules(root)


def build_modules(root: bytes) -> None:
    """Its own modules alone."""
    for deps in (b"deps-1", b"deps-2"):
        put(root + b"/jit/cuda/mod/build-k/" + deps + b"/mod.so")
    put(root + b"/jit/cuda/mod/build-k/.staging-0a/mod.o")
    put(root + b"/jit/cuda/mod/build-k/.lock", b"")


def usable(root, claim):
    """A published directory never changes."""
    return bool(os.listdir(root + b"/" + claim.name))
