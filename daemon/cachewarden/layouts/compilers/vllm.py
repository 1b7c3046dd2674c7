"""vLLM's own caches: graphs that it compiled for a model, and small results of looking at the machine.

Facts read in vllm 0.33.0 (`compilation/backends.py`, `compiler_interface.py`, `decorators.py`, `envs.py`).
`vllm_compile_cache.py` is a list of artifacts, each of which must be there; Inductor's and Triton's trees
lie beside it. So one configuration's directory goes whole, with all ranks and all that is in it.
"""

import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, join
from cachewarden.layouts.collecting import Collector
from cachewarden.layouts.compilers.rest import name_the_rest
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_GRAPHS = b"torch_compile_cache"
_AHEAD = b"torch_aot_compile"
_HASH = re.compile(rb"[0-9a-f]{10}")
_AHEAD_HASH = re.compile(rb"[0-9a-f]{64}")
_RANK = re.compile(rb"rank_\d+(_\d+)?")
# Small, or not ours to judge: models' properties, plans, tuning, kernels, media.
_KNOWN = frozenset({
    b"modelinfos", b"startup_plan", b"flashinfer_autotune_cache", b"deep_gemm", b"assets", b"xla_cache",
})  # fmt: skip
_KNOWN_FILE = re.compile(rb"gpu_p2p_access_cache_for_.*\.json|usage_stats\.json|do_not_track", re.DOTALL)


class Vllm:
    """`~/.cache/vllm`, or the `torch_compile_cache` in it."""

    name = "vllm"
    shape = (
        "`torch_compile_cache`, or that directory itself: ten hexadecimal digits with `rank_*_*` in them, or "
        "`torch_aot_compile`"
    )
    unit = "everything compiled for one configuration, of all ranks"
    locks = "those of nested caches"
    never = (
        "`modelinfos`, `startup_plan`, `deep_gemm`, `assets`, tuning results; whatever vLLM does not write"
    )
    checked = "vllm 0.33.0"
    kinds: Mapping[str, Kind] = {
        "graphs": Kind(
            Cost.REBUILD, "`torch_compile_cache/HASH` or `torch_compile_cache/torch_aot_compile/SHA256`"
        )
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """The directory of graphs, or one that has it."""
        return _is_graphs(tree, at) or _is_root(tree, at)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """One claim for each configuration."""
        found = Collector(self.name, "vLLM's cache", tree, at)
        if _is_graphs(tree, at):
            _graphs(tree, at, found)
            name_the_rest(tree, at, found)
            return found.split()
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if name == _GRAPHS and kind == stat.S_IFDIR:
                _graphs(tree, path, found)
                continue
            nested = context.nested(tree, path) if kind == stat.S_IFDIR else None
            if nested is not None:
                found.take(nested)
            elif name in _KNOWN or _KNOWN_FILE.fullmatch(name):
                found.known(path)
        name_the_rest(tree, at, found)
        return found.split()


def _is_root(tree: Tree, at: bytes) -> bool:
    return tree.listing(at).get(_GRAPHS) == stat.S_IFDIR and _is_graphs(tree, join(at, _GRAPHS))


def _is_graphs(tree: Tree, at: bytes) -> bool:
    for name in directories(tree.listing(at)):
        below = directories(tree.listing(join(at, name))) if _HASH.fullmatch(name) or name == _AHEAD else []
        wanted = _AHEAD_HASH if name == _AHEAD else _RANK
        if any(wanted.fullmatch(each) for each in below):
            return True
    return False


def _graphs(tree: Tree, at: bytes, found: Collector) -> None:
    for name, kind in tree.listing(at).items():
        path = join(at, name)
        if kind == stat.S_IFDIR and _HASH.fullmatch(name):
            found.claim((path,), "graphs", Cost.REBUILD)
        elif kind == stat.S_IFDIR and name == _AHEAD:
            for each, inner in tree.listing(path).items():
                if inner == stat.S_IFDIR and _AHEAD_HASH.fullmatch(each):
                    found.claim((join(path, each),), "graphs", Cost.REBUILD)
