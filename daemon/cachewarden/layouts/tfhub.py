"""The cache of TensorFlow Hub: one directory for each module, named by a hash.

Facts read in tensorflow-hub 0.16.1 (`resolver.py`): `SHA1/` with `SHA1.descriptor.txt`, `SHA1.UUID.tmp/`
while it is fetched, `SHA1.lock` for as long. A module is there when its directory is not empty: one half of
it is taken for all of it, and fails at load.
"""

import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, join
from cachewarden.layouts.collecting import Collector
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_HASH = re.compile(rb"[0-9a-f]{40}")
_TEMPORARY = re.compile(rb"[0-9a-f]{40}\.[0-9a-f]{32}\.tmp")
_BESIDE = re.compile(rb"[0-9a-f]{40}\.(descriptor\.txt|lock)")


class TensorFlowHub:
    """A module goes as a whole, with its description."""

    name = "tf_hub"
    kinds: Mapping[str, Kind] = {
        "module": Kind(Cost.DOWNLOAD, "`HASH` with `HASH.descriptor.txt`"),
        "partial": Kind(Cost.DOWNLOAD, "`HASH.UUID.tmp`"),
    }
    shape = "directories named by 40 hexadecimal digits, with `HASH.descriptor.txt` beside them"
    unit = "one module with its description"
    locks = "`HASH.lock`, whose presence means held; after `soft_lock_age` it is left over"
    never = "lock files, everything of another name"
    checked = "tensorflow-hub 0.16.1"

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """At least one module with its description, or one that is being fetched."""
        listing = tree.listing(at)
        return any(
            _TEMPORARY.fullmatch(name) or (_HASH.fullmatch(name) and name + b".descriptor.txt" in listing)
            for name in directories(listing)
        )

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """One claim for each module."""
        found = Collector(self.name, "a cache of TensorFlow Hub", tree, at)
        listing = tree.listing(at)
        modules = {name for name in directories(listing) if _HASH.fullmatch(name)}
        taken = set(modules)
        for name in sorted(modules):
            beside = [name + b".descriptor.txt"] if name + b".descriptor.txt" in listing else []
            taken.update(beside)
            locks = (join(at, name + b".lock"),) if name + b".lock" in listing else ()
            found.claim((join(at, each) for each in (name, *beside)), "module", locks=locks)
        for name, kind in listing.items():
            path = join(at, name)
            if name in taken:
                continue
            if kind == stat.S_IFDIR and _TEMPORARY.fullmatch(name):
                found.partial((path,), context)
            elif _BESIDE.fullmatch(name):
                found.known(path)
            else:
                found.stranger(path)
        return found.split()
