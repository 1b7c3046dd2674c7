"""The cache of uv, of which its documentation says that it is never safe to modify it directly.

Facts read in uv (`crates/uv-cache/src/lib.rs`, `docs/concepts/cache.md`): buckets `NAME-vN`; entries of one
are links into another, environments may be links or clones of them; every command holds `.lock`.
"""

import re

from cachewarden.layouts.base import directories
from cachewarden.layouts.delegated.whole import Delegated
from cachewarden.tree import Tree

_BUCKET = re.compile(
    rb"(archive|binaries|builds|environments|flat-index|git|interpreter|python|sdists|simple|wheels)-v\d+"
)


def _fits(tree: Tree, at: bytes) -> bool:
    listing = tree.listing(at)
    marked = b"CACHEDIR.TAG" in listing or b".lock" in listing
    return marked and any(_BUCKET.fullmatch(name) for name in directories(listing))


UV = Delegated("uv", "buckets `wheels-vN`, `archive-vN` … with `CACHEDIR.TAG` or `.lock`", "uv 0.13.9", _fits)
