"""The older cache of llama.cpp, of the time before it wrote into the cache of huggingface_hub.

Facts read in llama.cpp (`common/download.cpp`, `common/common.cpp`): `NAME.gguf` with `NAME.gguf.etag`
(older: `NAME.gguf.json`), `NAME.gguf.downloadInProgress` while it is fetched, `manifest=OWNER=REPO=TAG.json`.
"""

import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, files, join
from cachewarden.layouts.collecting import Collector
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_SPLIT = re.compile(rb"(.+)-\d{5}-of-\d{5}\.gguf")
_COMPANION = re.compile(rb"(.+\.gguf)\.(etag|json)")
_PARTIAL = re.compile(rb"(.+)\.downloadInProgress")
_MANIFEST = re.compile(rb"manifest=.+\.json")


class LlamaCpp:
    """A model is its GGUF file, or all files of a split one, with what the downloader wrote beside them."""

    name = "llama_cpp"
    kinds: Mapping[str, Kind] = {
        "model": Kind(Cost.DOWNLOAD, "a GGUF file, or all of a split one, with its `.etag` or `.json`"),
        "partial": Kind(Cost.DOWNLOAD, "`NAME.downloadInProgress`"),
    }
    shape = "`NAME.gguf` with `NAME.gguf.etag` or `NAME.gguf.json` beside it, or `*.gguf.downloadInProgress`"
    unit = "one model: its file or all its splits, with their `.etag` or `.json`"
    locks = "none"
    never = "models without such a companion: nothing says that they can be downloaded"
    checked = "llama.cpp 0216dab3 (sources)"

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A flat directory in which a download left its mark."""
        names = set(files(tree.listing(at)))
        for name in names:
            match = _COMPANION.fullmatch(name)
            if (match and match[1] in names) or name.endswith(b".gguf.downloadInProgress"):
                return True
        return False

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """One claim for each model, the data first: without it a companion says nothing."""
        found = Collector(self.name, "a cache of llama.cpp", tree, at)
        listing = tree.listing(at)
        names = files(listing)
        companions: dict[bytes, list[bytes]] = {}
        models: dict[bytes, list[bytes]] = {}
        rest = [name for name, kind in listing.items() if kind != stat.S_IFREG]
        for name in names:
            companion, split = _COMPANION.fullmatch(name), _SPLIT.fullmatch(name)
            if companion:
                companions.setdefault(companion[1], []).append(name)
            elif name.endswith(b".gguf"):
                models.setdefault(split[1] if split else name, []).append(name)
            elif _PARTIAL.fullmatch(name):
                found.partial((join(at, name),), context)
            else:
                rest.append(name)
        for group in models.values():
            beside = [each for name in group for each in companions.pop(name, ())]
            if beside:
                found.claim((join(at, each) for each in (*group, *beside)), "model")
            else:
                rest += group
        # What is left belongs to no model: an etag without its file makes the next start download it.
        found.all_known(join(at, name) for each in companions.values() for name in each)
        for name in rest:
            path = join(at, name)
            known = name.startswith(b".nfs") or _MANIFEST.fullmatch(name)
            found.known(path) if known else found.stranger(path)
        return found.split()
