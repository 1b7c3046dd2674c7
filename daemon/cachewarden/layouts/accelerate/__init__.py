"""A configured `.accelerate` folder: what people and programs put into one, judged by shape.

No program of Hugging Face makes a folder of this name; see `docs/layouts.md` for the uses that were
found, some of which hold what cannot be made again.
"""

from collections.abc import Callable, Mapping

from cachewarden.inventory import Claim, Split
from cachewarden.layouts.accelerate.lost import keep_for
from cachewarden.layouts.accelerate.shapes import (
    Listing,
    Shape,
    holds_training_state,
    is_configuration,
    is_project_state,
    shape_of,
)
from cachewarden.layouts.accelerate.survey import Rest, Survey, has_known_part, survey
from cachewarden.layouts.base import Context, Kind, files, join
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost


class Accelerate:
    """Offload folders, compile caches, prepared data and nested hub caches; the rest plain entries."""

    name = "accelerate"
    shape = (
        "any of the kinds below or another layout in its upper four levels, a configuration file, or, "
        "at any depth, what would be lost"
    )
    unit = (
        "one offload folder, set of shards, checkpoint …; the entries of nested caches; the rest one child "
        "each"
    )
    locks = "those of nested caches"
    never = (
        "configuration files, credentials, datasets saved by hand, models downloaded into a folder, a "
        "project's state, checkpoints unless `evict_checkpoints` says otherwise and then never the newest of "
        "a series"
    )
    checked = "accelerate 1.15.0, transformers 5.24.0"
    kinds: Mapping[str, Kind] = {
        "offload": Kind(Cost.REBUILD, "a folder with `index.json` and `.dat` files, wherever it lies"),
        "prepared": Kind(
            Cost.REBUILD,
            "a directory of shards and indexes only; loose shards of one set; `X.bin` with `X.idx`",
        ),
        "plain": Kind(Cost.REBUILD, "any other child"),
        "checkpoint": Kind(
            Cost.LOST,
            "`checkpoint_N`, `checkpoint-N`, whatever holds an optimizer's or a random generator's state, "
            "everything below `checkpoints`",
        ),
        "configuration": Kind(
            Cost.LOST,
            "`default_config.yaml`, `default_config.json`, `config.yaml`, every loose `*.yaml`; a directory "
            "with accelerate's own configuration and nothing below it",
        ),
        "dataset": Kind(Cost.LOST, "what `save_to_disk` wrote: somebody's work, not a library's cache"),
        "project": Kind(
            Cost.LOST,
            "everything unknown beside a `state.yaml`: a workflow tool keeps a project's state there",
        ),
    }

    def __init__(self, recognised: Callable[[Tree, bytes], bool]) -> None:
        self._recognised = recognised

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A folder with a configuration file or a part of a known shape; what would be lost, however deep."""
        listing = tree.listing(at)
        if any(is_configuration(name) for name in files(listing)) or holds_training_state(listing):
            return True
        return shape_of(tree, at, listing) is Shape.OFFLOAD or has_known_part(tree, at, self._recognised)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """Claims of everything in the folder. A cache of another layout in its place is divided as one."""
        nested = context.nested(tree, at)
        if nested is not None:
            return nested
        listing = tree.listing(at)
        if shape_of(tree, at, listing) is Shape.OFFLOAD:
            return Split(self.name, (self._folder(tree, at, listing),))
        rest = Rest.PROJECT if is_project_state(listing) else Rest.PLAIN
        if holds_training_state(listing):
            rest = Rest.CHECKPOINT
        return self._as_split(survey(tree, at, context, rest))

    def _folder(self, tree: Tree, at: bytes, listing: Listing) -> Claim:
        """The one claim of an offload folder that is the location, which stays: its children go."""
        names = sorted(listing, key=lambda name: (name != b"index.json", name))
        paths = tuple(join(at, name) for name in names)
        name = at + b"@offload"
        return Claim(name, paths, Shape.OFFLOAD.value, self.name, Cost.REBUILD, keep_for(tree, at))

    def _as_split(self, found: Survey) -> Split:
        return Split(
            self.name, tuple(found.claims), tuple(found.shared), tuple(found.foreign), tuple(found.warnings)
        )
