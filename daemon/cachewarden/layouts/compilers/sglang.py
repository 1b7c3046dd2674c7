"""SGLang's cache: what it compiles itself, and the caches of other tools that it sends there.

Facts read in sglang 0.5.23 (`srt/environ.py`, `kernels/jit/utils/compile/cache.py`,
`srt/compilation/backend.py`). `jit/TARGET/MODULE/build-KEY/deps-KEY` are published once and never changed;
its own pruning takes whole ones, in use or not. Triton, Inductor, the CUDA driver and flashinfer are sent
into it.
"""

import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, join
from cachewarden.layouts.collecting import Collector, is_abandoned
from cachewarden.layouts.compilers.rest import name_the_rest
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_GRAPHS = b"torch_compile_cache"
_JIT = b"jit"
_BUILD = re.compile(rb"build-.+", re.DOTALL)
_DEPS = re.compile(rb"deps-.+", re.DOTALL)
_STAGING = re.compile(rb"\.staging-.+", re.DOTALL)
_RANK = re.compile(rb"rank_\d+(_\d+)?")
_LOCK = b".lock"
# What nobody else has; each of the others occurs alone, or in a `.accelerate` folder.
_OWN = frozenset({b"cute_aot", b"tilelang", b"nv"})
_SENT_HERE = frozenset({b"triton", b"inductor", _GRAPHS, _JIT})
_KNOWN = frozenset({b"cute_aot", b"tilelang", b"nv", b"deep_gemm", b"triton", b"inductor", b".cache"})


class Sglang:
    """`~/.cache/sglang`."""

    name = "sglang"
    shape = (
        "`jit/TARGET/MODULE/build-*`; or `cute_aot`, `tilelang` or `nv` beside `triton`, `inductor`, `jit` "
        "or `torch_compile_cache`"
    )
    unit = "one published module; everything compiled for one model; the entries of nested caches"
    locks = "a build's `.lock`; those of nested caches"
    never = "`cute_aot`, `tilelang`, `deep_gemm`, lock files, whatever SGLang does not write"
    checked = "sglang 0.5.23"
    kinds: Mapping[str, Kind] = {
        "module": Kind(Cost.REBUILD, "`jit/TARGET/MODULE/build-KEY/deps-KEY`"),
        "graphs": Kind(Cost.REBUILD, "`torch_compile_cache/HASH`, of all ranks"),
        "partial": Kind(Cost.DERIVED, "a `.staging-UUID` of a build that was killed"),
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """Its own builds, or caches that nobody else puts beside each other."""
        names = set(directories(tree.listing(at)))
        if _OWN & names and _SENT_HERE & names:
            return True
        return _JIT in names and any(True for _ in _builds(tree, join(at, _JIT)))

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """Claims of modules and graphs, and those of the caches inside."""
        found = Collector(self.name, "SGLang's cache", tree, at)
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if kind != stat.S_IFDIR:
                found.stranger(path)
            elif name == _JIT:
                _modules(tree, path, context, found)
            elif name == _GRAPHS:
                _graphs(tree, path, found)
            elif (nested := context.nested(tree, path)) is not None:
                found.take(nested)
            elif name == b".cache":
                _dot_cache(tree, path, context, found)
            elif name in _KNOWN:
                found.known(path)
        name_the_rest(tree, at, found)
        return found.split()


def _builds(tree: Tree, at: bytes) -> Iterator[bytes]:
    for target in directories(tree.listing(at)):
        for module in directories(tree.listing(join(at, target))):
            for name in directories(tree.listing(join(at, target, module))):
                if _BUILD.fullmatch(name):
                    yield join(at, target, module, name)


def _modules(tree: Tree, at: bytes, context: Context, found: Collector) -> None:
    for build in _builds(tree, at):
        listing = tree.listing(build)
        locks = (join(build, _LOCK),) if listing.get(_LOCK) == stat.S_IFREG else ()
        for name, kind in listing.items():
            path = join(build, name)
            if kind == stat.S_IFDIR and _DEPS.fullmatch(name):
                found.claim((path,), "module", Cost.REBUILD, locks=locks)
            elif kind == stat.S_IFDIR and _STAGING.fullmatch(name) and is_abandoned(tree, (path,), context):
                found.claim((path,), "partial", Cost.DERIVED, locks=locks)
                found.claims[-1] = replace(found.claims[-1], partial=True)
            elif name == _LOCK or _STAGING.fullmatch(name):
                found.known(path)


def _graphs(tree: Tree, at: bytes, found: Collector) -> None:
    for name, kind in tree.listing(at).items():
        path = join(at, name)
        ranks = directories(tree.listing(path)) if kind == stat.S_IFDIR else []
        if any(_RANK.fullmatch(each) for each in ranks):
            found.claim((path,), "graphs", Cost.REBUILD)
        else:
            found.stranger(path)


def _dot_cache(tree: Tree, at: bytes, context: Context, found: Collector) -> None:
    """flashinfer appends `.cache/flashinfer` to the place that it is sent to."""
    for name, kind in tree.listing(at).items():
        path = join(at, name)
        nested = context.nested(tree, path) if kind == stat.S_IFDIR else None
        if nested is not None:
            found.take(nested)
        else:
            found.stranger(path)
