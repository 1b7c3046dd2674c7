"""The older cache of sentence-transformers: one directory for each model, named `OWNER_MODEL`.

Facts read in sentence-transformers 2.2.2 (`util.py: snapshot_download`): every file of the repository is
downloaded, `modules.json` last. Newer versions write into the cache of huggingface_hub.
"""

import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, join
from cachewarden.layouts.collecting import Collector
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

# Every repository on the hub has it; `save` writes none, so that a model of one's own is told apart.
_OF_A_REPOSITORY = b".gitattributes"


class SentenceTransformers:
    """Downloaded models are entries, models that somebody trained and saved in the same place stay."""

    name = "sentence_transformers"
    kinds: Mapping[str, Kind] = {
        "model": Kind(Cost.DOWNLOAD, "`OWNER_MODEL`, downloaded"),
        "saved": Kind(Cost.LOST, "a model that somebody saved, or cloned"),
    }
    shape = "directories `OWNER_MODEL` with `modules.json` and `.gitattributes` in them"
    unit = "one model"
    locks = "none"
    never = "models without `.gitattributes`, or with `.git`: they were saved by somebody, or cloned"
    checked = "sentence-transformers 2.2.2"

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """At least one model that was downloaded as a whole."""
        names = (join(at, name) for name in directories(tree.listing(at)) if b"_" in name)
        return any(_is_downloaded(tree, path) and b"modules.json" in tree.listing(path) for path in names)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """One claim for each model."""
        found = Collector(self.name, "a cache of sentence-transformers", tree, at)
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if kind == stat.S_IFDIR and b"_" in name and _is_downloaded(tree, path):
                found.claim((path,), "model")
            elif kind == stat.S_IFDIR and b"modules.json" in tree.listing(path):
                found.protected(path, "saved")
            else:
                found.stranger(path)
        return found.split()


def _is_downloaded(tree: Tree, path: bytes) -> bool:
    listing = tree.listing(path)
    return _OF_A_REPOSITORY in listing and b".git" not in listing
