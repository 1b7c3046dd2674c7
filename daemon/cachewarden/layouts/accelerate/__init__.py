"""A configured `.accelerate` folder: what people and programs put into one, judged by shape.

No program of Hugging Face makes a folder of this name; see `docs/layouts.md` for the uses that were
found, some of which hold what cannot be made again.
"""

from collections.abc import Mapping

from cachewarden.inventory import Claim, Split
from cachewarden.layouts.accelerate.lost import keep_for
from cachewarden.layouts.accelerate.shapes import (
    Shape,
    holds_training_state,
    is_configuration,
    is_project_state,
    shape_of,
)
from cachewarden.layouts.accelerate.survey import Rest, Survey, has_known_part, survey
from cachewarden.layouts.base import Context, files, join, listed
from cachewarden.layouts.hub import HubLayout
from cachewarden.paths import show
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_WHOLE = frozenset({Shape.OFFLOAD, Shape.INDUCTOR})


class Accelerate:
    """Offload folders, compile caches, prepared data and nested hub caches; the rest plain entries."""

    name = "accelerate"
    kinds: Mapping[str, Cost] = {
        "offload": Cost.REBUILD,
        "inductor": Cost.REBUILD,
        "triton": Cost.REBUILD,
        "prepared": Cost.REBUILD,
        "plain": Cost.REBUILD,
        "checkpoint": Cost.LOST,
        "configuration": Cost.LOST,
        "dataset": Cost.LOST,
        "project": Cost.LOST,
    }
    never = (
        "configuration files, credentials and other state of `$HF_HOME`, datasets saved by hand, a project's "
        "state, checkpoints unless `evict_checkpoints` says otherwise and then never the newest of a series"
    )

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A folder with a configuration file or a part of a known shape; what would be lost, however deep."""
        listing = tree.listing(at)
        if any(is_configuration(name) for name in files(listing)) or holds_training_state(listing):
            return True
        return shape_of(tree, at, listing) in _WHOLE or has_known_part(tree, at)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """Claims of everything in the folder. A hub cache in its place is divided as one."""
        hub = HubLayout()
        if hub.recognises(tree, at):
            return hub.split(tree, at, context)
        whole = self._is_one(tree, at)
        if whole is not None:
            return Split(self.name, (whole,))
        listing = tree.listing(at)
        rest = Rest.PROJECT if is_project_state(listing) else Rest.PLAIN
        if holds_training_state(listing):
            rest = Rest.CHECKPOINT
        return self._as_split(survey(tree, at, context, rest), at)

    def _is_one(self, tree: Tree, at: bytes) -> Claim | None:
        """The one claim of a folder whose children are useless without each other.

        The location itself cannot go, so that its children are the paths of one entry.
        """
        listing = tree.listing(at)
        shape = shape_of(tree, at, listing)
        if shape not in _WHOLE:
            return None
        names = sorted(listing, key=lambda name: (name != b"index.json", name))
        paths = tuple(join(at, name) for name in names)
        name = at + b"@" + shape.value.encode()
        return Claim(name, paths, shape.value, self.name, Cost.REBUILD, keep_for(tree, at))

    def _as_split(self, found: Survey, at: bytes) -> Split:
        warnings = list(found.warnings)
        if found.strangers:
            place = f"{show(at)}: " if at else ""
            warnings.append(f"{place}not part of a known cache, never touched: {listed(found.strangers)}")
        return Split(
            self.name, tuple(found.claims), tuple(found.shared), tuple(found.foreign), tuple(warnings)
        )
