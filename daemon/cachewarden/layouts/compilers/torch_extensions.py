"""C++ and CUDA extensions that torch built at run time: one build directory for each.

Facts read in torch 2.13.0 and 2.14.1 (`utils/cpp_extension.py`, `utils/file_baton.py`). `NAME/lock` exists
only while an older torch builds, and for ever with a newer one, which locks it by flock.
"""

import re
import stat
from collections.abc import Mapping
from dataclasses import replace

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, join
from cachewarden.layouts.collecting import Collector, age_of
from cachewarden.layouts.compilers.rest import name_the_rest
from cachewarden.layouts.compilers.versions import Version, gone
from cachewarden.tree import Tree
from cachewarden_policies.policy import HOUR
from cachewarden_policies.reasons import Cost, KeepReason

# `f"py{major}{minor}{abiflags}_{accelerator}"`; the major version has one digit.
_INTERPRETER = re.compile(rb"py(\d)(\d{1,2})[a-z]*_(cpu|xpu|cu(\d+)|rocm(\d+))")
_LOCK = b"lock"

# Ninja runs for minutes; a lock file that is older and not locked is what a killed build left.
_BUILDING = HOUR


class TorchExtensions:
    """Build directories, below one directory for each interpreter and CUDA where torch chose the place."""

    name = "torch_extensions"
    shape = (
        "`pyXY_cuNNN`, `pyXY_rocmNNN` or `pyXY_cpu` with directories in them; or nothing but directories "
        "`NAME` with `build.ninja` and `NAME.so`"
    )
    unit = "one extension's build directory"
    locks = "its `lock`"
    never = "an extension whose `lock` is younger than an hour, whatever is no build directory"
    checked = "torch 2.14.1, 2.13.0"
    kinds: Mapping[str, Kind] = {
        "extension": Kind(
            Cost.REBUILD,
            "one build directory; stale when a later interpreter or CUDA came and nothing of this one was "
            "used for 30 days",
        )
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """One of the two places that torch builds in."""
        names = directories(tree.listing(at))
        if any(_INTERPRETER.fullmatch(name) for name in names):
            return True
        return bool(names) and all(_is_extension(tree.listing(join(at, name)), name) for name in names)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """One claim for each extension."""
        found = Collector(self.name, "a cache of torch extensions", tree, at)
        trees = {
            join(at, name): version
            for name in directories(tree.listing(at))
            if (version := version_of(name)) is not None
        }
        stale = gone(tree, trees, context.now_ns)
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if path in trees:
                for inner, inner_kind in tree.listing(path).items():
                    _extension(tree, join(path, inner), inner_kind, context, found)
            elif kind == stat.S_IFDIR and _is_extension(tree.listing(path), name):
                _extension(tree, path, kind, context, found)
        name_the_rest(tree, at, found)
        found.claims = [
            replace(each, stale=each.name[: each.name.rfind(b"/")] in stale) for each in found.claims
        ]
        return found.split()


def version_of(name: bytes) -> Version | None:
    """Interpreter and CUDA in the name of a tree, as numbers to compare; None for any other name."""
    found = _INTERPRETER.fullmatch(name)
    if found is None:
        return None
    return int(found[1]), int(found[2]), int(found[4] or found[5] or 0)


def _is_extension(listing: Mapping[bytes, int], name: bytes) -> bool:
    return listing.get(b"build.ninja") == stat.S_IFREG and name + b".so" in listing


def _extension(tree: Tree, path: bytes, kind: int, context: Context, found: Collector) -> None:
    if kind != stat.S_IFDIR:
        return
    lock = join(path, _LOCK)
    locks: tuple[bytes, ...] = ()
    keep = None
    if tree.listing(path).get(_LOCK) == stat.S_IFREG:
        locks = (lock,)
        keep = KeepReason.LOCKED if age_of(tree, lock, context.now_ns) <= _BUILDING else None
    found.claim((path,), "extension", Cost.REBUILD, keep, locks=locks)
