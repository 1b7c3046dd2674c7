"""Data of NLTK: programs that miss a package fail, none fetches it by itself.

Facts read in nltk 3.10.4 (`downloader.py`, `data.py`).
"""

from cachewarden.layouts.base import directories, join
from cachewarden.layouts.reported.shelves import Reported
from cachewarden.tree import Tree

_SUBDIRECTORIES = frozenset(
    b"chunkers corpora grammars help misc models sentiment stemmers taggers tokenizers".split()
)
_TELLING = frozenset({b"chunkers", b"corpora", b"grammars", b"stemmers", b"taggers", b"tokenizers"})


def _shelves(tree: Tree, at: bytes) -> tuple[bytes, ...]:
    names = directories(tree.listing(at))
    if _TELLING.isdisjoint(names) or not _SUBDIRECTORIES.issuperset(names):
        return ()
    places = [join(at, name) for name in names]
    return tuple(places) if any(tree.listing(place) for place in places) else ()


NLTK = Reported(
    "nltk",
    "package",
    "only NLTK's folders (`corpora`, `tokenizers`, `taggers`, `chunkers` …)",
    "nltk 3.10.4",
    _shelves,
)
