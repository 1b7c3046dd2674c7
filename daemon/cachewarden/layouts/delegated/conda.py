"""The packages of conda, which environments use through hard links and soft links.

Facts read in conda (`cli/main_clean.py`, `core/package_cache_data.py`): `urls.txt` beside archives and
unpacked packages with `info/index.json`.
"""

import stat

from cachewarden.layouts.base import directories, files, join
from cachewarden.layouts.delegated.whole import Delegated
from cachewarden.tree import Tree


def _fits(tree: Tree, at: bytes) -> bool:
    listing = tree.listing(at)
    if listing.get(b"urls.txt") != stat.S_IFREG:
        return False
    if any(name.endswith((b".conda", b".tar.bz2")) for name in files(listing)):
        return True
    return any(tree.is_file(join(at, name, b"info/index.json")) for name in directories(listing))


CONDA = Delegated(
    "conda",
    "`urls.txt` beside `*.conda`, `*.tar.bz2` or unpacked packages",
    "conda 0f64223fb (sources)",
    _fits,
)
