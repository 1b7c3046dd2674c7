"""Caches whose tools are the only ones that may remove something from them.

Nothing in them is an entry. With `delegate = true`, a location over its limit has its tool's own command run
as the owner of the cache (`delegates`); otherwise they are measured and reported.
"""

from cachewarden.layouts.delegated.bazel import BAZEL
from cachewarden.layouts.delegated.ccache import CCACHE
from cachewarden.layouts.delegated.conda import CONDA
from cachewarden.layouts.delegated.pip import PIP
from cachewarden.layouts.delegated.uv import UV

__all__ = ["DELEGATED"]

DELEGATED = (UV, PIP, CONDA, CCACHE, BAZEL)
