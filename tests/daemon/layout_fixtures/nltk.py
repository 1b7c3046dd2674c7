"""Data of NLTK."""

import os

from tests.daemon.layout_trees import put

STAYS = (
    b"corpora/stopwords.zip",
    b"tokenizers/punkt/english.pickle",
)


def build(root: bytes) -> None:
    """Packages, packed and unpacked."""
    for name in (b"corpora/stopwords.zip", b"corpora/stopwords/english", b"tokenizers/punkt/english.pickle"):
        put(root + b"/" + name)


def usable(root, claim):
    """It is there."""
    return os.path.lexists(root + b"/" + claim.name)
