"""The cache of TorchInductor (`torch.compile`): compiled graphs, the code made from them, Triton's kernels.

Facts read in torch 2.14.1 and 2.13.0 (`_inductor/codecache.py`, `triton_bundler.py`,
`runtime/cache_dir_utils.py`, `_functorch/_aot_autograd/autograd_cache.py`). Files are written beside their
place and renamed. A missing graph is a miss. The graphs contain the Python code and Triton's binaries, and
write them out again; Triton's directory of a key that is there is taken as complete.
"""

import re
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, files, join
from cachewarden.layouts.collecting import Collector
from cachewarden.layouts.compilers.rest import name_the_rest
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_GRAPHS = b"fxgraph"
_AUTOGRAD = b"aotautograd"
_LOCKS = b"locks"
_TRITON = b"triton"
_SHARD = re.compile(rb"[a-z2-7]{2}")
_CODE = re.compile(rb"c[a-z2-7]{51}\..+", re.DOTALL)
_KNOWN = frozenset({
    _LOCKS, b"cache", b"dynamo", b"aoti_eager", b"gcc", b"precompiled_headers", b"memoizer_cache.json",
    b"memoizer_cache.lock",
})  # fmt: skip


class Inductor:
    """Graphs, one entry for each key; generated code by its directory; Triton's keys."""

    name = "inductor"
    shape = "`fxgraph` or `aotautograd`; or a directory of two letters with code named by its hash in it"
    unit = "one compiled graph; one directory of generated code; one of Triton's keys"
    locks = "the entry's own in `locks`"
    never = (
        "`locks`, `cache`, `dynamo`, `aoti_eager`, C++ headers (a living process remembers where it put "
        "them), whatever Inductor does not write"
    )
    checked = "torch 2.14.1, 2.13.0"
    kinds: Mapping[str, Kind] = {
        "graph": Kind(Cost.REBUILD, "`fxgraph/XY/KEY`: the variants of one compiled graph"),
        "autograd": Kind(Cost.REBUILD, "`aotautograd/KEY`: the joint graph of one function"),
        "code": Kind(
            Cost.REBUILD,
            "a directory `XY` of generated code; `derived` where it is Python alone and the graphs it was "
            "made from are there",
            otherwise=Cost.DERIVED,
        ),
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """One of the two directories of graphs, or generated code."""
        names = directories(tree.listing(at))
        if _GRAPHS in names or _AUTOGRAD in names:
            return True
        shards = (name for name in names if _SHARD.fullmatch(name))
        return any(_is_code(tree.listing(join(at, name))) for name in shards)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """Claims of everything that is made again."""
        found = Collector(self.name, "an Inductor cache", tree, at)
        locks = _Locks(tree, at)
        has_graphs = any(True for _ in _keys(tree, join(at, _GRAPHS)))
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if _is_known(name):
                found.known(path)
            elif kind != stat.S_IFDIR:
                found.stranger(path)
            elif name in (_GRAPHS, _AUTOGRAD):
                _graphs(tree, path, locks, found)
            elif name == _TRITON:
                _triton(tree, path, context, found, derived=has_graphs)
            elif _SHARD.fullmatch(name):
                _code(tree, path, locks, found, derived=has_graphs)
            else:
                found.stranger(path)
        name_the_rest(tree, at, found)
        return found.split()


class _Locks:
    """`locks/KEY.lock`, by key and by the directory of code that the key leads to."""

    def __init__(self, tree: Tree, at: bytes) -> None:
        self._by_key: dict[bytes, bytes] = {}
        self._by_shard: dict[bytes, list[bytes]] = defaultdict(list)
        for name in files(tree.listing(join(at, _LOCKS))):
            key = name.removesuffix(b".lock")
            if key != name:
                self._by_key[key] = join(at, _LOCKS, name)
                self._by_shard[key[1:3]].append(self._by_key[key])

    def of(self, key: bytes) -> tuple[bytes, ...]:
        """The lock of one key, where it exists."""
        return (self._by_key[key],) if key in self._by_key else ()

    def of_shard(self, shard: bytes) -> tuple[bytes, ...]:
        """The locks of all keys whose code lies in this directory."""
        return tuple(self._by_shard.get(shard, ()))


def _is_known(name: bytes) -> bool:
    return name in _KNOWN or name.startswith((b"halide-runtime-", b"."))


def _is_code(listing: Mapping[bytes, int]) -> bool:
    return any(_CODE.fullmatch(name) for name in files(listing))


def _keys(tree: Tree, graphs: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(path, key) of each directory `fxgraph/XY/KEY`."""
    for shard in directories(tree.listing(graphs)):
        for key in directories(tree.listing(join(graphs, shard))):
            yield join(graphs, shard, key), key


def _graphs(tree: Tree, path: bytes, locks: _Locks, found: Collector) -> None:
    if path.rpartition(b"/")[2] == _GRAPHS:
        for each, key in _keys(tree, path):
            found.claim((each,), "graph", Cost.REBUILD, locks=locks.of(key))
        return
    for key in directories(tree.listing(path)):
        found.claim((join(path, key),), "autograd", Cost.REBUILD, locks=locks.of(key))


def _code(tree: Tree, path: bytes, locks: _Locks, found: Collector, *, derived: bool) -> None:
    """A directory of code that is mapped, or loaded by path while a compilation runs, and goes whole."""
    listing = tree.listing(path)
    if listing and not _is_code(listing):
        found.stranger(path)
        return
    if any(name.endswith(b".h") for name in listing):  # `cpp_prefix_path` is asked once in a process
        found.known(path)
        return
    python = all(name.endswith(b".py") and kind == stat.S_IFREG for name, kind in listing.items())
    cost = Cost.DERIVED if derived and python and listing else Cost.REBUILD
    found.claim((path,), "code", cost, locks=locks.of_shard(path.rpartition(b"/")[2]))


def _triton(tree: Tree, at: bytes, context: Context, found: Collector, *, derived: bool) -> None:
    """`triton/DEVICE` are Triton caches, and so is `triton` where somebody set its place himself."""
    whole = context.nested(tree, at)
    if whole is not None:
        found.take(whole)
        return
    for name in tree.listing(at):
        path = join(at, name)
        nested = context.nested(tree, path)
        if nested is None:
            found.known(path)
        elif derived:
            claims = tuple(
                replace(each, cost=Cost.DERIVED) if each.layout == "triton" else each
                for each in nested.claims
            )
            found.take(replace(nested, claims=claims))
        else:
            found.take(nested)
