"""Kernels that ATen's jiterator compiled: one small file each.

Facts read in pytorch (`aten/src/ATen/native/cuda/jit_utils.cpp`): read whole and closed, made again when
missing. The name tells everything that the kernel depends on.
"""

import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, join
from cachewarden.layouts.collecting import Collector
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_KERNEL = re.compile(rb".+_arch[^/]+_nvrtc\d+\.\d+_(sass|ptx)_\d+_[0-9a-f]{40}", re.DOTALL)


class Jiterator:
    """`~/.cache/torch/kernels`."""

    name = "jiterator"
    shape = "files named `NAME_archX.Y_nvrtcX.Y_sass_LENGTH_SHA1` or `…_ptx_…`"
    unit = "one kernel's file"
    locks = "none"
    never = "files of any other name"
    checked = "pytorch main, 2026"
    kinds: Mapping[str, Kind] = {"kernel": Kind(Cost.REBUILD, "one kernel's file")}

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A directory with at least one file of such a name."""
        return any(
            kind == stat.S_IFREG and _KERNEL.fullmatch(name) for name, kind in tree.listing(at).items()
        )

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """One claim for each kernel."""
        found = Collector(self.name, "a cache of the jiterator", tree, at)
        for name, kind in tree.listing(at).items():
            if kind == stat.S_IFREG and _KERNEL.fullmatch(name):
                found.claim((join(at, name),), "kernel", Cost.REBUILD)
            else:
                found.stranger(join(at, name))
        return found.split()
