"""The cache of ccache, which keeps the sums of its directories in files of its own.

Facts read in ccache (`storage/local/localstorage.cpp`): `0` to `f` (two levels since version 4), with
`stats` in each; a file that goes by another hand leaves the sums wrong.
"""

import re
import stat

from cachewarden.layouts.base import directories, join
from cachewarden.layouts.delegated.whole import Delegated
from cachewarden.tree import Tree

_DIGIT = re.compile(rb"[0-9a-f]")


def _fits(tree: Tree, at: bytes) -> bool:
    digits = [join(at, name) for name in directories(tree.listing(at)) if _DIGIT.fullmatch(name)]
    return any(_counts(tree, path) for path in digits)


def _counts(tree: Tree, path: bytes) -> bool:
    listing = tree.listing(path)
    if listing.get(b"stats") == stat.S_IFREG:
        return True
    inner = (join(path, name) for name in directories(listing) if _DIGIT.fullmatch(name))
    return any(tree.listing(each).get(b"stats") == stat.S_IFREG for each in inner)


CCACHE = Delegated("ccache", "directories `0` to `f` with a file `stats` in them", "ccache 4.7.5", _fits)
