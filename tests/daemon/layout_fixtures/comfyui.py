"""A program with its models, its users' workflows and what they made."""

import os

from tests.daemon.layout_trees import put

STAYS = (
    b"models/checkpoints/sd.safetensors",
    b"output/image.png",
)


def build(root: bytes) -> None:
    """The whole program."""
    for name in (
        b"checkpoints/sd.safetensors",
        b"loras/style.safetensors",
        b"vae/vae.pt",
        b"controlnet/c.pth",
    ):
        put(root + b"/models/" + name)
    for name in (b"output/image.png", b"user/default/workflows/w.json", b"main.py", b"models/mine/x.bin"):
        put(root + b"/" + name)


def usable(root, claim):
    """It is there."""
    return os.path.lexists(root + b"/" + claim.name)
