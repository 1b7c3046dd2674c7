"""JAX's persistent compilation cache: a file for each executable, with another one for its last use.

Facts read in jax 0.10.2 (`_src/lru_cache.py`, `_src/compilation_cache.py`). Only with
`jax_compilation_cache_max_size` does JAX lock `.lockfile` (flock), write `KEY-atime` and evict: it removes
`-cache`, then `-atime`, and reads the `-atime` of every `-cache`. Where one is missing, it gives up with a
warning each time and never writes again.
"""

import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, join
from cachewarden.layouts.collecting import Collector
from cachewarden.layouts.compilers.rest import name_the_rest
from cachewarden.paths import show
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_CACHE = re.compile(rb"(?P<key>.+-[0-9a-f]{64})-cache", re.DOTALL)
_ATIME = re.compile(rb"(?P<key>.+-[0-9a-f]{64})-atime", re.DOTALL)
_LOCK = b".lockfile"
_TUNED = b"xla_gpu_per_fusion_autotune_cache_dir"
_KNOWN = frozenset({_LOCK, b"xla_gpu_kernel_cache_file"})


class Jax:
    """`-cache` and `-atime` go together, in JAX's own order, under JAX's own lock."""

    name = "jax"
    shape = "files named `NAME-SHA256-cache`"
    unit = "one executable: `KEY-cache`, then `KEY-atime`"
    locks = "`.lockfile`"
    never = "`.lockfile`, `xla_gpu_kernel_cache_file`, files of any other name"
    checked = "jax 0.10.2"
    kinds: Mapping[str, Kind] = {
        "executable": Kind(Cost.REBUILD, "`KEY-cache` with its `KEY-atime`"),
        "leftover": Kind(Cost.DERIVED, "a `KEY-atime` whose `KEY-cache` is gone"),
        "autotune": Kind(
            Cost.REBUILD, "one file of `xla_gpu_per_fusion_autotune_cache_dir`, which JAX does not limit"
        ),
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A directory with at least one executable."""
        return any(kind == stat.S_IFREG and _CACHE.fullmatch(name) for name, kind in tree.listing(at).items())

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """One claim for each executable."""
        found = Collector(self.name, "a JAX cache", tree, at)
        listing = tree.listing(at)
        locks = (join(at, _LOCK),) if listing.get(_LOCK) == stat.S_IFREG else ()
        limited = bool(locks) or any(_ATIME.fullmatch(name) for name in listing)
        undated = 0
        for name, kind in listing.items():
            path = join(at, name)
            cache, atime = _CACHE.fullmatch(name), _ATIME.fullmatch(name)
            if name == _TUNED and kind == stat.S_IFDIR:
                for each in tree.listing(path):
                    found.claim((join(path, each),), "autotune", Cost.REBUILD)
            elif name in _KNOWN:
                found.known(path)
            elif kind == stat.S_IFREG and cache:
                dated = listing.get(cache["key"] + b"-atime") == stat.S_IFREG
                undated += not dated
                paths = (path, join(at, cache["key"] + b"-atime")) if dated else (path,)
                found.claim(paths, "executable", Cost.REBUILD, locks=locks)
            elif kind == stat.S_IFREG and atime and listing.get(atime["key"] + b"-cache") != stat.S_IFREG:
                found.claim((path,), "leftover", Cost.DERIVED, locks=locks)
        if limited and undated:
            found.warnings.append(_frozen(at, undated))
        name_the_rest(tree, at, found)
        return found.split()


def _frozen(at: bytes, undated: int) -> str:
    place = f"{show(at)}: " if at else ""
    return (
        f"{place}{undated} executables have no -atime file: with a size limit of its own, JAX writes nothing "
        "here any more until they are gone"
    )
