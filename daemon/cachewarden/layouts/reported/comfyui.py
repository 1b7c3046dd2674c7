"""ComfyUI's models, which its users choose and their workflows name.

Facts read in ComfyUI (`folder_paths.py`).
"""

import stat

from cachewarden.layouts.base import directories, join
from cachewarden.layouts.reported.shelves import Reported
from cachewarden.tree import Tree

_MODELS = frozenset(
    b"checkpoints clip clip_vision configs controlnet diffusers diffusion_models embeddings gligen "
    b"hypernetworks latent_upscale_models loras model_patches photomaker style_models "
    b"text_encoders audio_encoders unet upscale_models vae vae_approx".split()
)
_ENOUGH = 4


def _shelves(tree: Tree, at: bytes) -> tuple[bytes, ...]:
    listing = tree.listing(at)
    place = join(at, b"models") if listing.get(b"models") == stat.S_IFDIR else at
    found = [name for name in directories(tree.listing(place)) if name in _MODELS]
    return tuple(join(place, name) for name in found) if len(found) >= _ENOUGH else ()


COMFYUI = Reported(
    "comfyui",
    "model",
    "four or more of ComfyUI's folders (`checkpoints`, `loras`, `vae`, `controlnet` …), also in `models`",
    "ComfyUI (sources)",
    _shelves,
)
