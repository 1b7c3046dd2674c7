"""flashinfer's kernels: built by ninja for each version and GPU, and downloaded cubins.

Facts read in flashinfer's sources (`jit/env.py`, `jit/core.py`, `jit/cubin_loader.py`):
`VERSION/ARCHITECTURES/cached_ops/OP`, a lock for each (flock) in `cached_ops/tmp`, sources in `generated`.
"""

import re
import stat
from collections.abc import Mapping
from dataclasses import replace

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, files, join
from cachewarden.layouts.collecting import Collector
from cachewarden.layouts.compilers.rest import name_the_rest
from cachewarden.layouts.compilers.versions import Version, gone, versions_in
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_VERSION = re.compile(rb"(\d{1,6}(?:\.\d{1,6})+)([.+\-]?[a-z0-9.+]*)")
_OPS = b"cached_ops"
_LOCKS = b"tmp"
_CUBINS = b"cubins"
_KNOWN = frozenset({b"generated", b"flashinfer_jit.lock", b"flashinfer_jit.log"})


class Flashinfer:
    """`~/.cache/flashinfer`."""

    name = "flashinfer"
    shape = "`VERSION/ARCHITECTURES/cached_ops`"
    unit = "one operator's build directory; one child of `cubins`"
    locks = "`cached_ops/tmp/OP.lock`; the `.lock` files beside a cubin"
    never = "`generated`, lock files, whatever flashinfer does not write"
    checked = "flashinfer fb28d7242"
    kinds: Mapping[str, Kind] = {
        "operator": Kind(
            Cost.REBUILD,
            "`VERSION/ARCHITECTURES/cached_ops/OP`; stale when a later version came and nothing of this one "
            "was used for 30 days",
        ),
        "cubins": Kind(Cost.DOWNLOAD, "one child of `cubins`"),
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A version with operators for some architecture."""
        for name in directories(tree.listing(at)):
            if version_of(name) is None:
                continue
            architectures = directories(tree.listing(join(at, name)))
            if any(_OPS in directories(tree.listing(join(at, name, each))) for each in architectures):
                return True
        return False

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """One claim for each operator and each child of `cubins`."""
        found = Collector(self.name, "flashinfer's cache", tree, at)
        listing = tree.listing(at)
        versions = versions_in(tree, at, version_of)
        stale = gone(tree, versions, context.now_ns)
        for name, kind in listing.items():
            path = join(at, name)
            if path in versions:
                before = len(found.claims)
                _version(tree, path, found)
                found.claims[before:] = [replace(each, stale=path in stale) for each in found.claims[before:]]
            elif name == _CUBINS and kind == stat.S_IFDIR:
                _cubins(tree, path, found)
            elif name in _KNOWN:
                found.known(path)
        name_the_rest(tree, at, found)
        return found.split()


def version_of(name: bytes) -> Version | None:
    """The numbers of a version, as `0.2.14`, `0.3.0rc1` or `0.4.0+cu128`; None for any other name."""
    found = _VERSION.fullmatch(name)
    return tuple(int(each) for each in found[1].split(b".")) if found else None


def _version(tree: Tree, at: bytes, found: Collector) -> None:
    for name, kind in tree.listing(at).items():
        if kind == stat.S_IFDIR:
            _architecture(tree, join(at, name), found)


def _architecture(tree: Tree, at: bytes, found: Collector) -> None:
    locks = frozenset(files(tree.listing(join(at, _OPS, _LOCKS))))
    for name, kind in tree.listing(at).items():
        path = join(at, name)
        if name in _KNOWN:
            found.known(path)
        elif name == _OPS and kind == stat.S_IFDIR:
            for each, inner in tree.listing(path).items():
                lock = each + b".lock"
                held = (join(path, _LOCKS, lock),) if lock in locks else ()
                if each == _LOCKS:
                    found.known(join(path, each))
                elif inner == stat.S_IFDIR:
                    found.claim((join(path, each),), "operator", Cost.REBUILD, locks=held)


def _cubins(tree: Tree, at: bytes, found: Collector) -> None:
    listing = tree.listing(at)
    for name, kind in listing.items():
        path = join(at, name)
        if name.endswith(b".lock"):
            found.known(path)
            continue
        inside = tree.listing(path) if kind == stat.S_IFDIR else {}
        locks = [join(path, each) for each in files(inside) if each.endswith(b".lock")]
        locks += [join(at, name + b".lock")] if name + b".lock" in listing else []
        found.claim((path,), "cubins", Cost.DOWNLOAD, locks=tuple(locks))
