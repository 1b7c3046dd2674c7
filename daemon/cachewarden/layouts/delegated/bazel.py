"""The disk cache of Bazel: results of actions name blobs, which must not go before them.

Facts read in bazel (`remote/disk/DiskCacheGarbageCollector.java`). Its collector runs inside Bazel, in idle
moments, with `--experimental_disk_cache_gc_max_size`; there is no command to call.
"""

import re
import stat

from cachewarden.layouts.base import directories, join
from cachewarden.layouts.delegated.whole import Delegated
from cachewarden.tree import Tree

_PREFIX = re.compile(rb"[0-9a-f]{2}")


def _fits(tree: Tree, at: bytes) -> bool:
    listing = tree.listing(at)
    if any(listing.get(name) != stat.S_IFDIR for name in (b"ac", b"cas")):
        return False
    prefixes = [name for each in (b"ac", b"cas") for name in directories(tree.listing(join(at, each)))]
    return bool(prefixes) and all(_PREFIX.fullmatch(name) for name in prefixes)


BAZEL = Delegated("bazel", "`ac` and `cas` with directories `00` to `ff` in them", "bazel (sources)", _fits)
