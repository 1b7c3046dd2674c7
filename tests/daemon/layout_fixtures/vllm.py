"""vLLM's cache with other tools' trees inside, and its directory of graphs alone."""

import os

from tests.daemon.layout_fixtures import inductor, jax, triton
from tests.daemon.layout_trees import put

STAYS = (b"modelinfos/a.json", b"gpu_p2p_access_cache_for_0,1.json")


def build(root: bytes) -> None:
    """Graphs, and the small things beside them."""
    build_graphs(root + b"/torch_compile_cache")
    put(root + b"/modelinfos/a.json")
    put(root + b"/gpu_p2p_access_cache_for_0,1.json")
    jax.build(root + b"/xla_cache")


def build_graphs(root: bytes) -> None:
    """Two configurations, one of them compiled ahead of time."""
    for rank in (b"rank_0_0", b"rank_1_0"):
        put(root + b"/0123456789/" + rank + b"/backbone/vllm_compile_cache.py")
        put(root + b"/0123456789/" + rank + b"/backbone/artifact_compile_range_1_8_subgraph_0/f")
    inductor.build(root + b"/0123456789/inductor_cache")
    triton.build(root + b"/0123456789/triton_cache")
    put(root + b"/torch_aot_compile/" + b"0a" * 32 + b"/rank_0_0/model")
    inductor.build(root + b"/torch_aot_compile/" + b"0a" * 32 + b"/inductor_cache")


def usable(root, claim):
    """All artifacts that the list names are there, or neither list nor artifacts."""
    for _, below, names in os.walk(root + b"/" + claim.name):
        if b"vllm_compile_cache.py" in names and not any(name.startswith(b"artifact_") for name in below):
            return False
    return bool(os.listdir(root + b"/" + claim.name))
