"""Datasets of TensorFlow Datasets: `NAME/[CONFIG/]VERSION`, downloads beside them.

Facts read in tensorflow-datasets 4.9.10 (`core/constants.py`, `core/dataset_info.py`,
`core/utils/file_utils.py`). A version's directory is written as `incomplete.XXXXXX_VERSION` and renamed.
"""

import json
import re
import stat
from collections.abc import Iterator, Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, join
from cachewarden.layouts.collecting import Collector
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_NAME = re.compile(rb"[a-z][a-z0-9_]*")
_LOOKED_AT = 8  # directories that could be datasets: to tell a shape, not to find everything
_VERSION = re.compile(rb"\d+\.\d+\.\d+")
_INFO = b"dataset_info.json"
_FEATURES = b"features.json"
_INCOMPLETE = b"incomplete."
_INFO_LIMIT = 8 << 20


class TensorFlowDatasets:
    """A version of a dataset goes as a whole; what no download can bring back stays."""

    name = "tfds"
    kinds: Mapping[str, Kind] = {
        "version": Kind(
            Cost.DOWNLOAD, "`NAME/[CONFIG/]VERSION`, which the library downloads and prepares again"
        ),
        "own": Kind(Cost.LOST, "a dataset that nothing says how to download"),
        "download": Kind(
            Cost.DOWNLOAD, "a file in `downloads` with its `.INFO`, or what was unpacked from one"
        ),
        "partial": Kind(Cost.DOWNLOAD, "`incomplete.*`"),
    }
    shape = "`NAME/VERSION` or `NAME/CONFIG/VERSION` with `dataset_info.json` and `features.json` in it"
    unit = "one version of a dataset (of one configuration); one download"
    locks = "none"
    never = (
        "`downloads/manual`, datasets whose `dataset_info.json` names no download or a builder that is not "
        "the library's own"
    )
    checked = "tensorflow-datasets 4.9.10"

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """At least one prepared version."""
        names = [name for name in directories(tree.listing(at)) if _NAME.fullmatch(name)]
        return any(next(_versions(tree, join(at, name)), None) is not None for name in names[:_LOOKED_AT])

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """One claim for each version and each download."""
        found = Collector(self.name, "a directory of TensorFlow Datasets", tree, at)
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if kind == stat.S_IFDIR and name == b"downloads":
                _downloads(found, path, context)
            elif kind == stat.S_IFDIR:
                _dataset(found, tree, path, context)
            else:
                found.stranger(path)
        return found.split()


def _versions(tree: Tree, dataset: bytes) -> Iterator[bytes]:
    for name in directories(tree.listing(dataset)):
        path = join(dataset, name)
        if _is_version(tree, path, name):
            yield path
        else:
            below = (join(path, each) for each in directories(tree.listing(path)))
            yield from (each for each in below if _is_version(tree, each, each.rpartition(b"/")[2]))


def _is_version(tree: Tree, path: bytes, name: bytes) -> bool:
    listing = tree.listing(path) if _VERSION.fullmatch(name) else {}
    return listing.get(_INFO) == stat.S_IFREG and listing.get(_FEATURES) == stat.S_IFREG


def _dataset(found: Collector, tree: Tree, path: bytes, context: Context) -> None:
    versions = set(_versions(tree, path))
    if not versions and not any(name.startswith(_INCOMPLETE) for name in tree.listing(path)):
        found.stranger(path)
        return
    waiting = [path]
    while waiting:
        here = waiting.pop()
        for name, kind in found.inside(here).items():
            child = join(here, name)
            if child in versions:
                _version(found, tree, child)
            elif kind == stat.S_IFDIR and name.startswith(_INCOMPLETE):
                found.partial((child,), context)
            elif kind == stat.S_IFDIR and any(each.startswith(child + b"/") for each in versions):
                waiting.append(child)
            elif name == b".config" or name.endswith(b".json"):
                found.known(child)
            else:
                found.stranger(child)


def _version(found: Collector, tree: Tree, path: bytes) -> None:
    if downloads_again(tree.read(join(path, _INFO), _INFO_LIMIT)):
        found.claim((path,), "version")
    else:
        found.protected(path, "own")


def downloads_again(text: bytes | None) -> bool:
    """Whether a `dataset_info.json` says that the library downloads the dataset and prepares it again.

    `downloadSize` is a number in quotes (JSON of a protocol buffer). Datasets made from files of one's own
    have none, or a `moduleName` outside the library; with `manual_dir` the source is not there for sure.
    """
    try:
        found = json.loads(text or b"")
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict):
        return False
    size, module = found.get("downloadSize"), found.get("moduleName", "tensorflow_datasets.")
    return (
        str(size).isascii()
        and str(size).isdigit()
        and int(str(size)[:20]) > 0
        and isinstance(module, str)
        and module.startswith("tensorflow_datasets.")
    )


def _downloads(found: Collector, at: bytes, context: Context) -> None:
    """`FILE` with `FILE.INFO`, `extracted/NAME`, `manual` for what people put there themselves."""
    listing = found.inside(at)
    for name, kind in listing.items():
        path = join(at, name)
        info = name + b".INFO"
        if kind == stat.S_IFDIR and name == b"extracted":
            for each in found.inside(path):
                found.claim((join(path, each),), "download")
        elif name.endswith(b".INFO") and name.removesuffix(b".INFO") in listing:
            continue  # goes with its file
        elif kind == stat.S_IFREG and info in listing:
            found.claim((path, join(at, info)), "download")
        elif b".tmp." in name or name.startswith(_INCOMPLETE):
            found.partial((path,), context)
        elif name == b"manual" or name.endswith(b".INFO"):
            found.known(path)
        else:
            found.stranger(path)
