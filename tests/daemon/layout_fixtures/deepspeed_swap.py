"""What two ranks swapped."""

import os

from tests.daemon.layout_trees import put

STAYS = (b"zero_stage_3/float16params/rank0/0_param.tensor.swp",)


def build(root: bytes) -> None:
    """An `nvme_path` that is used for nothing else."""
    build_stage(root + b"/zero_stage_3")


def build_stage(root: bytes) -> None:
    """The stage's directory."""
    for rank in (b"rank0", b"rank1"):
        put(root + b"/float16params/" + rank + b"/0_param.tensor.swp")
        put(root + b"/optimizer/" + rank + b"/1.tensor.swp")


def usable(root, claim):
    """It is there."""
    return os.path.isdir(root + b"/" + claim.name)
