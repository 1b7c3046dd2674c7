"""Models of OpenAI's Whisper: one file each.

Facts read in openai-whisper 20250625 (`__init__.py`): downloaded straight onto the final name, checked by
hash at the next load and downloaded again when it is wrong. The writer has the file open all the time.
"""

import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, join
from cachewarden.layouts.collecting import Collector
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_MODEL = re.compile(rb"((tiny|base|small|medium)(\.en)?|large(-v[123](-turbo)?)?)\.pt")


class Whisper:
    """Files with the names of the published models; whatever else lies there is somebody's own."""

    name = "whisper"
    kinds: Mapping[str, Kind] = {"model": Kind(Cost.DOWNLOAD, "one published model")}
    shape = "files named as the published models: `tiny.pt`, `base.en.pt`, `large-v3.pt` …"
    unit = "one file"
    locks = "none"
    never = "files of any other name"
    checked = "openai-whisper 20250625"

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A directory with at least one published model and nothing that is a directory."""
        listing = tree.listing(at)
        if stat.S_IFDIR in listing.values():
            return False
        return any(kind == stat.S_IFREG and _MODEL.fullmatch(name) for name, kind in listing.items())

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """One claim for each published model."""
        found = Collector(self.name, "a cache of Whisper", tree, at)
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if kind == stat.S_IFREG and _MODEL.fullmatch(name):
                found.claim((path,), "model")
            elif name.startswith(b".nfs"):
                found.known(path)
            else:
                found.stranger(path)
        return found.split()
