"""The cache of pip: answers of the index by a hash, and wheels that were built.

Facts read in pip 26.3 (`_internal/network/cache.py`, `_internal/commands/cache.py`):
`http-v2/A/B/C/D/E/HASH` with `HASH.body`.
"""

import stat

from cachewarden.layouts.delegated.whole import Delegated
from cachewarden.tree import Tree

_BESIDE = (b"selfcheck", b"wheels")


def _fits(tree: Tree, at: bytes) -> bool:
    listing = tree.listing(at)
    if listing.get(b"http-v2") == stat.S_IFDIR:
        return True
    return listing.get(b"http") == stat.S_IFDIR and any(listing.get(each) == stat.S_IFDIR for each in _BESIDE)


PIP = Delegated("pip", "`http-v2`; or `http` beside `wheels` or `selfcheck`", "pip 23.0.1, 26.3", _fits)
