"""Models of spaCy, which are Python packages: removing one breaks the installation that it is part of.

Facts read in spacy 3.8.18 (`cli/download.py`, `util.py`): `NAME/meta.json`, `NAME/NAME-VERSION/config.cfg`.
"""

import re

from cachewarden.layouts.base import directories, join
from cachewarden.layouts.reported.shelves import Reported
from cachewarden.tree import Tree

# LANGUAGE_TYPE_GENRE_SIZE
_NAME = re.compile(rb"[a-z]{2,3}(_[a-z0-9]+)+_(sm|md|lg|trf)")


def _shelves(tree: Tree, at: bytes) -> tuple[bytes, ...]:
    names = [name for name in directories(tree.listing(at)) if _NAME.fullmatch(name)]
    return (at,) if any(_is_model(tree, join(at, name), name) for name in names) else ()


def _is_model(tree: Tree, path: bytes, name: bytes) -> bool:
    listing = tree.listing(path)
    if b"meta.json" not in listing:
        return False
    versions = (each for each in directories(listing) if each.startswith(name + b"-"))
    return any(b"config.cfg" in tree.listing(join(path, each)) for each in versions)


SPACY = Reported(
    "spacy",
    "package",
    "packages named like `en_core_web_sm` with `meta.json` and `NAME-VERSION/config.cfg` in them",
    "spacy 3.8.18",
    _shelves,
)
