"""Everything that a `.accelerate` folder may hold."""

import os

from tests.daemon.layout_fixtures import hub, inductor, triton
from tests.daemon.layout_trees import ODD, checkpoint, links_lead_somewhere, offload, put

STAYS = ()


def build(root: bytes) -> None:
    """A folder that was given to every tool, and used for training."""
    put(root + b"/default_config.yaml")
    offload(root + b"/offload/model")
    offload(root + b"/scratch")
    for number in (b"0", b"1", b"10"):
        checkpoint(root + b"/checkpoints/checkpoint_" + number)
    checkpoint(root + b"/group/run/checkpoints/checkpoint_0")
    inductor.build(root + b"/inductor")
    triton.build(root + b"/triton")
    for name in (
        b"a-00001-of-00002.safetensors",
        b"a-00002-of-00002.safetensors",
        b"a.safetensors.index.json",
    ):
        put(root + b"/" + name)
    for name in ODD:
        put(root + b"/" + name + b"/f")
    hub.build(root + b"/nested/hub")


def usable(root, claim):
    """All of an offload folder is there, and a set of shards is a set."""
    return all(os.path.lexists(root + b"/" + path) for path in claim.paths) and links_lead_somewhere(
        root, claim
    )
