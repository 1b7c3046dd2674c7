"""A whole `$HF_HOME`: caches of several kinds beside credentials, configuration and state.

Which names are whose comes from huggingface_hub 2.4 (`constants.py`, `utils/_auth.py`, `_sandbox_cache.py`,
`utils/_cache_assets.py`) and accelerate 1.15 (`commands/config/config_args.py`). A cache in it is told by
its shape, whatever its name; what has none of the known shapes stays.
"""

import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, join, read_names
from cachewarden.layouts.hub import HubLayout
from cachewarden.layouts.parts import Parts
from cachewarden.tree import Tree

_CREDENTIALS = frozenset({b"token", b"stored_tokens"})
_CONFIGURATION = (b"default_config.yaml", b"default_config.json")
_CACHES = (b"xet", b"modules", b"datasets", b"assets")
_HUB = b"hub"
_IS_HUB = HubLayout().recognises
# `assets/LIBRARY/NAMESPACE` holds whatever a library puts there, without a manifest: nobody can tell what
# of it could be made again.
_OTHERS = frozenset(
    {
        b"accelerate",
        b"assets",
        b"sandbox",
        b"stored_tokens.lock",
        b".check_for_update_done",
        b".check_for_skill_update_done",
        b".agent_harnesses.json",
    }
)
_KNOWN = _CREDENTIALS | _OTHERS | {b"xet", b"modules"}


class HomeLayout:
    """Its caches, each by its own layout; nothing else."""

    name = "home"
    shape = (
        "`token`, `stored_tokens` or `accelerate/default_config.yaml`; or `hub` beside `xet`, `modules`, "
        "`datasets` or `assets`"
    )
    unit = "none of its own: the entries of the caches in it"
    locks = "those of the caches in it"
    never = (
        "credentials, accelerate's configuration, `sandbox`, `assets`, state files, everything that is no "
        "cache of a known layout"
    )
    checked = "huggingface_hub 2.4.0, accelerate 1.15.0"
    kinds: Mapping[str, Kind] = {}

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A directory with credentials, with accelerate's configuration, or with several of the caches."""
        listing = tree.listing(at)
        if any(listing.get(name) == stat.S_IFREG for name in _CREDENTIALS):
            return True
        if listing.get(b"accelerate") == stat.S_IFDIR:
            configuration = tree.listing(join(at, b"accelerate"))
            if any(configuration.get(name) == stat.S_IFREG for name in _CONFIGURATION):
                return True
        beside = any(listing.get(name) == stat.S_IFDIR for name in _CACHES)
        return beside and listing.get(_HUB) == stat.S_IFDIR and _IS_HUB(tree, join(at, _HUB))

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """The caches in it, divided; the rest is foreign, and strangers are named in one warning."""
        parts = Parts(self.name, "a known cache", at)
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            nested = None
            if kind == stat.S_IFDIR and name not in _OTHERS:
                nested = context.nested(tree, path)
            if nested is not None:
                parts.take(nested)
            elif name in _KNOWN or (kind == stat.S_IFDIR and read_names(tree, path) == {}):
                parts.known(path)
            else:
                parts.stranger(path)
        return parts.split()
