"""TensorRT engines: those of ONNX Runtime, and those of Torch-TensorRT.

Facts read in onnxruntime (`tensorrt_execution_provider.cc`, `…_utils.h`) and torch-tensorrt d7f2062810
(`dynamo/_engine_cache.py`). Neither locks; both write in place and build again what is missing.
"""

import re
import stat
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, join
from cachewarden.layouts.collecting import Collector
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost, KeepReason

_ENGINE = re.compile(rb"(?P<stem>.+_sm\d+\+?)(\.stripped)?\.engine(\.encrypted)?", re.DOTALL)
_PROFILE = re.compile(rb"(?P<stem>.+_sm\d+\+?)\.profile", re.DOTALL)
_TIMING = re.compile(rb".+_sm\d+\+?\.timing", re.DOTALL)
_CONTEXT = b"_ctx.onnx"

_HASH = re.compile(rb"[0-9a-z]{32,64}")
_BLOB = b"blob.bin"


class OrtTensorrt:
    """An engine goes with its profile; timing results, which make every later build faster, stay."""

    name = "ort_tensorrt"
    shape = "files named `…_smNN.engine`"
    unit = "one engine with its profile"
    locks = "none"
    never = "`.timing` files; engines beside a `*_ctx.onnx`, which names them; files of any other name"
    checked = "onnxruntime main, 2026"
    kinds: Mapping[str, Kind] = {
        "engine": Kind(
            Cost.REBUILD,
            "`X_smNN.engine` with `X_smNN.profile`; `lost` beside a `*_ctx.onnx`",
            otherwise=Cost.LOST,
        )
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A directory with at least one engine."""
        return any(
            kind == stat.S_IFREG and _ENGINE.fullmatch(name) for name, kind in tree.listing(at).items()
        )

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """One claim for each engine."""
        found = Collector(self.name, "a cache of TensorRT engines", tree, at)
        listing = tree.listing(at)
        engines: dict[bytes, list[bytes]] = defaultdict(list)
        for name, kind in listing.items():
            part = _ENGINE.fullmatch(name) or _PROFILE.fullmatch(name)
            if kind == stat.S_IFREG and part:
                engines[part["stem"]].append(join(at, name))
            elif _TIMING.fullmatch(name):
                found.known(join(at, name))
            else:
                found.stranger(join(at, name))
        named = any(name.endswith(_CONTEXT) for name in listing)
        for stem, paths in engines.items():
            if named:
                found.claim(paths, "engine", Cost.LOST, KeepReason.PROTECTED)
            else:
                found.claim(paths, "engine", Cost.REBUILD)
            found.claims[-1] = replace(found.claims[-1], name=join(at, stem))
        return found.split()


class TorchTensorrt:
    """`HASH/blob.bin`; the tool evicts on its own by the directories' times."""

    name = "torch_tensorrt"
    shape = "`HASH/blob.bin`, a hash of at least 32 letters and digits"
    unit = "one engine's directory"
    locks = "none"
    never = "the cache's own directory, which a living process lists without a guard; anything else in it"
    checked = "torch-tensorrt d7f2062810"
    kinds: Mapping[str, Kind] = {"engine": Kind(Cost.REBUILD, "one directory `HASH`")}

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A directory with at least one engine."""
        names = directories(tree.listing(at))
        return any(_is_engine(tree, join(at, name), name) for name in names)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """One claim for each engine."""
        found = Collector(self.name, "Torch-TensorRT's cache", tree, at)
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if kind == stat.S_IFDIR and _is_engine(tree, path, name):
                found.claim((path,), "engine", Cost.REBUILD)
            else:
                found.stranger(path)
        return found.split()


def _is_engine(tree: Tree, path: bytes, name: bytes) -> bool:
    return _HASH.fullmatch(name) is not None and tree.listing(path).get(_BLOB) == stat.S_IFREG
