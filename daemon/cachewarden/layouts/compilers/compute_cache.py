"""What the CUDA driver compiled from PTX (`~/.nv/ComputeCache`): shown, never touched.

The driver's source is closed. What is known (CUDA's programming guide, `CUDA_CACHE_PATH` and
`CUDA_CACHE_MAXSIZE`) is that it limits the cache itself; how its index is locked is not, so that no
part of it and no moment can be called safe.
"""

import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Claim, Split
from cachewarden.layouts.base import Context, Kind, directories, join
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost, KeepReason

_INDEX = b"index"
_SHARD = re.compile(rb"[0-9a-f]")


class ComputeCache:
    """One entry that stays."""

    name = "cuda_compute_cache"
    shape = "`index` beside directories of one hexadecimal digit"
    unit = "the whole cache"
    locks = "none"
    never = "all of it: set `CUDA_CACHE_MAXSIZE`, and the driver keeps it small"
    checked = "the CUDA programming guide"
    kinds: Mapping[str, Kind] = {
        "whole": Kind(Cost.REBUILD, "`PATH@cuda_compute_cache`, shown with its size")
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """The index and such directories, and no other directory."""
        listing = tree.listing(at)
        below = directories(listing)
        return (
            listing.get(_INDEX) == stat.S_IFREG
            and bool(below)
            and all(_SHARD.fullmatch(name) for name in below)
        )

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """One claim of everything."""
        paths = tuple(join(at, name) for name in tree.listing(at))
        if not paths:
            return Split(self.name)
        name = at + b"@" + self.name.encode()
        return Split(self.name, (Claim(name, paths, "whole", self.name, Cost.REBUILD, KeepReason.UNKNOWN),))
