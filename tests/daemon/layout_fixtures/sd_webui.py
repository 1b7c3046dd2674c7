"""Models of Stable Diffusion WebUI."""

import os

from tests.daemon.layout_trees import put

STAYS = (
    b"models/Stable-diffusion/sd.ckpt",
    b"cache/hashes/cache.db",
)


def build(root: bytes) -> None:
    """The data directory."""
    for name in (b"Stable-diffusion/sd.ckpt", b"Lora/style.safetensors", b"VAE/vae.pt"):
        put(root + b"/models/" + name)
    put(root + b"/cache/hashes/cache.db")
    put(root + b"/outputs/image.png")


def usable(root, claim):
    """It is there."""
    return os.path.lexists(root + b"/" + claim.name)
