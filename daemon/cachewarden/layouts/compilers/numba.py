"""Numba's cache of compiled functions: an index and its data files for each function.

Facts read in numba 0.68.1 (`core/caching.py`). `NAME-LINE.pyXYZ.nbi` is the index, `….N.nbc` are the
overloads. A missing file is a miss. A new index numbers its data from 1 again and is written first: data that
was left behind would be read under a new key, so data goes first.
"""

import re
import stat
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, files, join
from cachewarden.layouts.collecting import Collector, is_abandoned
from cachewarden.layouts.compilers.rest import name_the_rest
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_SOURCE = re.compile(rb".*_[0-9a-f]{40}", re.DOTALL)
_INDEX = re.compile(rb"(?P<function>.+-\d+\.py\d+[a-z]*)\.nbi", re.DOTALL)
_DATA = re.compile(rb"(?P<function>.+-\d+\.py\d+[a-z]*)\.\d+\.nbc", re.DOTALL)
_TEMPORARY = re.compile(rb".+\.tmp\.[0-9a-f]{16}", re.DOTALL)


class Numba:
    """One entry for each function: all its overloads, then its index."""

    name = "numba"
    shape = "directories named `NAME_SHA1` with `*.nbi` files in them, or such files without any source"
    unit = "one function for one interpreter: its `.nbc` files, then its `.nbi`"
    locks = "none"
    never = "`__pycache__` beside sources, whatever numba does not write"
    checked = "numba 0.68.1"
    kinds: Mapping[str, Kind] = {
        "function": Kind(Cost.REBUILD, "`FUNCTION-LINE.pyXYZ`: data files and index"),
        "partial": Kind(Cost.DERIVED, "a temporary file of a writer that was killed"),
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """The user's directory, or one directory in it."""
        listing = tree.listing(at)
        sources = (join(at, name) for name in directories(listing) if _SOURCE.fullmatch(name))
        return _holds_functions(listing) or any(_holds_functions(tree.listing(path)) for path in sources)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """One claim for each function."""
        found = Collector(self.name, "a numba cache", tree, at)
        listing = tree.listing(at)
        if _holds_functions(listing):
            _functions(tree, at, context, found)
            name_the_rest(tree, at, found)
            return found.split()
        for name, kind in listing.items():
            path = join(at, name)
            if kind == stat.S_IFDIR and _SOURCE.fullmatch(name):
                _functions(tree, path, context, found)
        name_the_rest(tree, at, found)
        return found.split()


def _holds_functions(listing: Mapping[bytes, int]) -> bool:
    names = files(listing)
    return any(_INDEX.fullmatch(name) for name in names) and not any(
        name.endswith((b".py", b".pyc")) for name in names
    )


def _functions(tree: Tree, at: bytes, context: Context, found: Collector) -> None:
    functions: dict[bytes, list[bytes]] = defaultdict(list)
    for name, kind in tree.listing(at).items():
        path = join(at, name)
        part = _DATA.fullmatch(name) or _INDEX.fullmatch(name)
        if kind == stat.S_IFREG and part:
            functions[part["function"]].append(path)
        elif kind == stat.S_IFREG and _TEMPORARY.fullmatch(name):
            _temporary(tree, path, context, found)
        else:
            found.stranger(path)
    for function, paths in functions.items():
        paths.sort(key=lambda path: (path.endswith(b".nbi"), path))
        found.claim(paths, "function", Cost.REBUILD)
        found.claims[-1] = replace(found.claims[-1], name=join(at, function))


def _temporary(tree: Tree, path: bytes, context: Context, found: Collector) -> None:
    if not is_abandoned(tree, (path,), context):
        found.known(path)
        return
    found.claim((path,), "partial", Cost.DERIVED)
    found.claims[-1] = replace(found.claims[-1], partial=True)
