"""OpenVINO's model cache: one `.blob` for each compiled model.

Facts read in openvino (`src/inference/src/cache_manager.hpp`): written in place, mapped or read as a stream,
compiled again when missing.
"""

import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, join
from cachewarden.layouts.collecting import Collector
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

# A hash of 64 bits, in decimal digits.
_BLOB = re.compile(rb"\d{8,20}\.blob")


class Openvino:
    """A directory that somebody gave as `CACHE_DIR`."""

    name = "openvino"
    shape = "files named `NUMBER.blob`"
    unit = "one blob"
    locks = "none"
    never = "files of any other name"
    checked = "openvino 1673472f"
    kinds: Mapping[str, Kind] = {"blob": Kind(Cost.REBUILD, "one compiled model")}

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A directory with at least one blob."""
        return any(kind == stat.S_IFREG and _BLOB.fullmatch(name) for name, kind in tree.listing(at).items())

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """One claim for each blob."""
        found = Collector(self.name, "an OpenVINO cache", tree, at)
        for name, kind in tree.listing(at).items():
            if kind == stat.S_IFREG and _BLOB.fullmatch(name):
                found.claim((join(at, name),), "blob", Cost.REBUILD)
            else:
                found.stranger(join(at, name))
        return found.split()
