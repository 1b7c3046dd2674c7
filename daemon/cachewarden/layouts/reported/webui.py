"""Models of Stable Diffusion WebUI, which its users choose.

Facts read in stable-diffusion-webui (`modules/paths_internal.py`, `modules/cache.py`).
"""

import stat

from cachewarden.layouts.base import directories, join
from cachewarden.layouts.reported.shelves import Reported
from cachewarden.tree import Tree

_FIRST = b"Stable-diffusion"
_BESIDE = frozenset(
    b"Codeformer ControlNet ESRGAN GFPGAN LDSR Lora RealESRGAN ScuNET SwinIR VAE VAE-approx deepbooru "
    b"hypernetworks karlo".split()
)


def _shelves(tree: Tree, at: bytes) -> tuple[bytes, ...]:
    listing = tree.listing(at)
    place = join(at, b"models") if listing.get(b"models") == stat.S_IFDIR else at
    names = directories(tree.listing(place))
    if _FIRST not in names or _BESIDE.isdisjoint(names):
        return ()
    return tuple(join(place, name) for name in names)


WEBUI = Reported(
    "sd_webui",
    "model",
    "`Stable-diffusion` beside another of its folders (`Lora`, `VAE`, `ESRGAN` …), also in `models`",
    "stable-diffusion-webui (sources)",
    _shelves,
)
