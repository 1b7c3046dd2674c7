"""Code that transformers, diffusers, datasets and evaluate copied out of repositories, to import it.

Kilobytes, without a lock, read again whenever a class is loaded; and where a repository vanished from the
hub, its code is nowhere else (transformers 5.24, `dynamic_module_utils.py`). So it is only reported.
"""

import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, join
from cachewarden.layouts.parts import Parts
from cachewarden.tree import Tree

_PACKAGES = frozenset(
    {b"transformers_modules", b"diffusers_modules", b"datasets_modules", b"evaluate_modules"}
)
_KNOWN = _PACKAGES | {b"__init__.py", b"__pycache__"}


class ModulesLayout:
    """No entries: all of it stays, and is counted."""

    name = "modules"
    shape = "`transformers_modules`, `diffusers_modules`, `datasets_modules` or `evaluate_modules` in it"
    unit = "none: only reported"
    locks = "none"
    never = "all of it: code that runs, and that may be nowhere else"
    checked = "transformers 5.24.0, diffusers 0.42.1"
    kinds: Mapping[str, Kind] = {}

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A directory with one of the packages in it."""
        listing = tree.listing(at)
        return any(listing.get(name) == stat.S_IFDIR for name in _PACKAGES)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """Everything is foreign."""
        parts = Parts(self.name, "a cache of modules", at)
        for name in tree.listing(at):
            if name in _KNOWN or name.endswith(b".lock"):
                parts.known(join(at, name))
            else:
                parts.stranger(join(at, name))
        return parts.split()
