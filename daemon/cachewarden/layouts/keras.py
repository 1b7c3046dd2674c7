"""The downloads of Keras: `datasets` and `models` beside `keras.json`.

Facts read in keras 3.15.1 (`utils/file_utils.py: get_file`, `backend/config.py`): a download is there when
its file is; what was unpacked is unpacked again from the archive, which is downloaded again.
"""

import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.accelerate.shapes import holds_training_state
from cachewarden.layouts.base import Context, Kind, join
from cachewarden.layouts.collecting import Collector
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_CONFIGURATION = b"keras.json"
_PLACES = (b"datasets", b"models")
_ARCHIVE = re.compile(rb"(.+?)((_archive|\.(tar|tar\.gz|tgz|tar\.bz2|tar\.xz|zip))?)")


class Keras:
    """One download is an entry: a file, or a directory that was unpacked."""

    name = "keras"
    kinds: Mapping[str, Kind] = {
        "download": Kind(Cost.DOWNLOAD, "a file, or an archive with the directory unpacked from it"),
        "saved": Kind(Cost.LOST, "a model that somebody saved there"),
    }
    shape = "`keras.json` beside `datasets` or `models`"
    unit = "one download with what was unpacked from it"
    locks = "none"
    never = "`keras.json`; models that somebody saved there (`*.keras`, a directory with `saved_model.pb`)"
    checked = "keras 3.15.1"

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """The home of Keras."""
        listing = tree.listing(at)
        return listing.get(_CONFIGURATION) == stat.S_IFREG and any(
            listing.get(place) == stat.S_IFDIR for place in _PLACES
        )

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """One claim for each download."""
        found = Collector(self.name, "a home of Keras", tree, at)
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if kind == stat.S_IFDIR and name in _PLACES:
                _downloads(found, tree, path)
            elif name == _CONFIGURATION:
                found.known(path)
            else:
                found.stranger(path)
        return found.split()


def _downloads(found: Collector, tree: Tree, at: bytes) -> None:
    groups: dict[bytes, list[bytes]] = {}
    for name, kind in found.inside(at).items():
        path = join(at, name)
        if name.startswith(b".nfs"):
            found.known(path)
        elif kind not in (stat.S_IFREG, stat.S_IFDIR):
            found.stranger(path)  # a link leads to somebody's own data
        elif _is_saved(tree, path, name):
            found.protected(path, "saved")
        else:
            groups.setdefault(_stem(name), []).append(path)
    for paths in groups.values():
        found.claim(paths, "download")


def _stem(name: bytes) -> bytes:
    """What an archive and the directory unpacked from it have in common."""
    match = _ARCHIVE.fullmatch(name.removesuffix(b"_extracted"))
    return match[1] if match else name


def _is_saved(tree: Tree, path: bytes, name: bytes) -> bool:
    if name.endswith(b".keras"):
        return True
    listing = tree.listing(path)
    return b"saved_model.pb" in listing or holds_training_state(listing)
