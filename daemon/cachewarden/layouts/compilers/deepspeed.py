"""Tensors that DeepSpeed swapped to a disk: the state of a training run, shown and never touched.

Facts read in DeepSpeed edaa72212 (`runtime/swap_tensor/partitioned_param_swapper.py`,
`runtime/zero/stage3.py`). Files are opened for each transfer and closed again, so that a living rank is not
seen between two of them; the next start of the same rank removes what a dead one left.
"""

import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, join
from cachewarden.layouts.collecting import Collector
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_STAGE = b"zero_stage_3"
_PARAMETERS = re.compile(rb"[a-z0-9]+params|optimizer")
_RANK = re.compile(rb"rank\d+")


class DeepspeedSwap:
    """One entry that stays."""

    name = "deepspeed_swap"
    shape = "`zero_stage_3` with `TYPEparams/rankN` or `optimizer/rankN` in it, or that directory itself"
    unit = "all that the ranks swapped"
    locks = "none"
    never = "all of it: whether a rank lives cannot be seen, and its next start removes what is left"
    checked = "DeepSpeed edaa72212"
    kinds: Mapping[str, Kind] = {"swap": Kind(Cost.LOST, "`zero_stage_3`, shown with its size")}

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """The directory of the stage, or one that has it."""
        listing = tree.listing(at)
        return _is_stage(tree, at) or (
            listing.get(_STAGE) == stat.S_IFDIR and _is_stage(tree, join(at, _STAGE))
        )

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """One protected claim for each directory of ranks."""
        found = Collector(self.name, "DeepSpeed's swap", tree, at)
        listing = tree.listing(at)
        if _is_stage(tree, at):
            for name in listing:
                found.protected(join(at, name), "swap")
            return found.split()
        for name in listing:
            if name == _STAGE:
                found.protected(join(at, name), "swap")
            else:
                found.stranger(join(at, name))
        return found.split()


def _is_stage(tree: Tree, at: bytes) -> bool:
    names = [name for name in directories(tree.listing(at)) if _PARAMETERS.fullmatch(name)]
    return any(_RANK.fullmatch(rank) for name in names for rank in directories(tree.listing(join(at, name))))
