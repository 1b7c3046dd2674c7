"""The cache of Hugging Face datasets: prepared datasets, results of `map`, downloads, unpacked archives.

Facts read in datasets 5.2.0 (`builder.py`, `arrow_dataset.py`, `utils/file_utils.py`, `utils/extract.py`).
"""

import stat
from collections.abc import Mapping
from dataclasses import replace

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, files, join, read_names
from cachewarden.layouts.datasets.downloads import claim_downloads
from cachewarden.layouts.datasets.names import (
    DOWNLOADS,
    INCOMPLETE,
    LOCK,
    Listing,
    candidates,
    is_downloads,
    is_hash,
    is_prepared,
    is_saved,
)
from cachewarden.layouts.datasets.prepared import Cache, claim_incomplete, claim_prepared, locks_by_end
from cachewarden.layouts.datasets.source import Sources
from cachewarden.layouts.parts import Parts
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost, KeepReason

# NAME/CONFIGURATION/VERSION, and mostly one more below it: the hash of the builder's code.
_SHALLOWEST, _DEEPEST = 3, 4


class DatasetsLayout:
    """One prepared dataset goes whole, its description first; results of `map` go by themselves."""

    name = "datasets"
    shape = (
        "`NAME/CONFIGURATION/VERSION[/HASH]` with `dataset_info.json` or Arrow files in it, or a builder's "
        "lock beside it; or files named by hashes, each with its `.json`"
    )
    unit = "a prepared dataset; the results of one `map` in it; a download; an unpacked archive"
    locks = (
        "`HASH_builder.lock` and `HASH_info.lock` beside a dataset, the lock of its path at the top, "
        "`HASH.lock` of a download or an archive"
    )
    never = (
        "lock files, what `save_to_disk` wrote, datasets that a generator or a query gave, "
        "everything that no builder wrote"
    )
    checked = "datasets 5.2.0"
    kinds: Mapping[str, Kind] = {
        "prepared": Kind(
            Cost.REBUILD,
            "a dataset's Arrow files, `dataset_info.json` first; `rebuild` while its repository lies whole "
            "in the `hub` beside this cache",
            otherwise=Cost.DOWNLOAD,
        ),
        "map": Kind(
            Cost.REBUILD,
            "`PATH@cache-FINGERPRINT`: what one `map`, `filter` or `shuffle` wrote, of all processes; stale "
            "once the dataset is gone",
        ),
        "download": Kind(Cost.DOWNLOAD, "a file from elsewhere than the hub, and its `.json`"),
        "extracted": Kind(Cost.DOWNLOAD, "an unpacked archive; the archive may be gone"),
        "partial": Kind(
            Cost.REBUILD,
            "`HASH.incomplete` and half-written results, older than `partial_max_idle`; never resumed",
            otherwise=Cost.DOWNLOAD,
        ),
        "generated": Kind(Cost.LOST, "a dataset from `from_generator`, Spark or an SQL query"),
        "saved": Kind(Cost.LOST, "what `save_to_disk` wrote: somebody's work, not a library's cache"),
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A directory with a prepared dataset in it, or with downloads, or that is one of downloads."""
        listing = tree.listing(at)
        if is_downloads(listing):
            return True
        if listing.get(DOWNLOADS) == stat.S_IFDIR and is_downloads(tree.listing(join(at, DOWNLOADS))):
            return True
        return any(_holds_prepared(tree, join(at, name), 1) for name in candidates(listing))

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """Claims of all datasets, downloads and archives below `at`."""
        listing = tree.listing(at)
        parts = Parts(self.name, "a datasets cache", at)
        locks = locks_by_end(name for name in files(listing) if name.endswith(LOCK))
        cache = Cache(tree, at, context, Sources(tree, at), parts, locks)
        if is_downloads(listing):
            claim_downloads(cache, at, listing)
            return parts.split()
        for name, kind in listing.items():
            path = join(at, name)
            if kind == stat.S_IFREG and name.endswith(LOCK):
                parts.known(path)
            elif kind != stat.S_IFDIR:
                parts.stranger(path)
            elif name == DOWNLOADS and not _holds_prepared(tree, path, 1):
                claim_downloads(cache, path, tree.listing(path))
            else:
                _take(cache, path)
        return parts.split()


def _holds_prepared(tree: Tree, path: bytes, depth: int) -> bool:
    """Whether a builder was at work below the directory `path`, itself `depth` levels below the top."""
    listing = tree.listing(path)
    if depth >= _SHALLOWEST and is_prepared(listing):
        return True
    # Locks stay when the last dataset went: the next builder takes them, and nobody else may.
    if depth >= _SHALLOWEST - 1 and any(name.endswith(b"_builder.lock") for name in files(listing)):
        return True
    return depth < _DEEPEST and any(
        _holds_prepared(tree, join(path, name), depth + 1) for name in directories(listing)
    )


def _take(cache: Cache, path: bytes) -> None:
    """What is below the directory `path` at the top; one stranger where nothing of it is a dataset's."""
    here = replace(cache, parts=Parts(cache.parts.layout, cache.parts.what, cache.at))
    _descend(here, path, 1, {})
    found = here.parts
    if found.strangers and not found.claims:
        cache.parts.stranger(path)
        return
    cache.parts.claims += found.claims
    cache.parts.foreign += found.foreign
    cache.parts.strangers += found.strangers


def _descend(cache: Cache, path: bytes, depth: int, beside: Listing) -> None:
    listing = read_names(cache.tree, path)
    if listing is None:  # it may hold anything
        claim = cache.claim(path, (path,), "prepared", Cost.DOWNLOAD)
        cache.parts.claims.append(replace(claim, keep=KeepReason.UNKNOWN))
    elif depth >= _SHALLOWEST and path.endswith(INCOMPLETE):
        claim_incomplete(cache, path, beside)
    elif is_saved(listing) or depth == _DEEPEST:
        _at_the_end(cache, path, listing, beside)
    elif depth == _SHALLOWEST and is_prepared(listing):
        # Without a hash of its own; others of the same version, with one, may lie in it.
        own = {name: kind for name, kind in listing.items() if not _is_between(name, kind)}
        claim_prepared(cache, path, own, beside)
        _go_on(cache, path, depth, own, listing)
    else:
        _go_on(cache, path, depth, {}, listing)


def _at_the_end(cache: Cache, path: bytes, listing: Listing, beside: Listing) -> None:
    if listing or is_hash(path.rpartition(b"/")[2]):
        claim_prepared(cache, path, listing, beside)
    else:
        cache.parts.known(path)


def _go_on(cache: Cache, path: bytes, depth: int, done: Listing, listing: Listing) -> None:
    """Look at all names in the directory `path` but those that are `done`."""
    for name, kind in listing.items():
        child = join(path, name)
        if name in done:
            continue
        if kind == stat.S_IFDIR:
            _descend(cache, child, depth + 1, listing)
        elif kind == stat.S_IFREG and name.endswith(LOCK):
            cache.parts.known(child)
        else:
            cache.parts.stranger(child)
    if not listing:
        cache.parts.known(path)


def _is_between(name: bytes, kind: int) -> bool:
    return kind == stat.S_IFDIR or (kind == stat.S_IFREG and name.endswith(LOCK))
