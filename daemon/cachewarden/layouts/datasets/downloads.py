"""What datasets downloaded from elsewhere than the hub, and the archives that it unpacked.

`HASH` with `HASH.json` (its URL and ETag), `HASH.lock` and, while it is fetched, `HASH.incomplete`, which
is started over and not resumed (datasets 5.2, `utils/file_utils.py: get_from_cache`); unpacked archives in
`extracted/HASH` with `extracted/HASH.lock` (`utils/extract.py`). transformers before 4.22 had the same.
"""

import stat
from dataclasses import replace

from cachewarden.inventory import Claim
from cachewarden.layouts.base import join, read_names
from cachewarden.layouts.datasets.names import EXTRACTED, HASHED, INCOMPLETE, LOCK, Listing
from cachewarden.layouts.datasets.prepared import Cache
from cachewarden_policies.reasons import Cost, KeepReason

_DESCRIPTION = b".json"
_DATA = frozenset({stat.S_IFREG, stat.S_IFDIR})


def claim_downloads(cache: Cache, path: bytes, listing: Listing) -> None:
    """The claims of a directory of downloads and of the unpacked archives in it."""
    if not listing:
        cache.parts.known(path)
    for name, kind in listing.items():
        if name == EXTRACTED and kind == stat.S_IFDIR:
            _claim_extracted(cache, join(path, name))
        elif kind in _DATA and HASHED.fullmatch(name):
            paths = [name, *([name + _DESCRIPTION] if name + _DESCRIPTION in listing else [])]
            _claim(cache, path, listing, paths, "download")
        elif kind == stat.S_IFREG and name.endswith(LOCK):
            cache.parts.known(join(path, name))
        elif kind == stat.S_IFREG and HASHED.fullmatch(name.removesuffix(INCOMPLETE)):
            _claim_incomplete(cache, path, listing, name)
        elif kind != stat.S_IFREG or not HASHED.fullmatch(name.removesuffix(_DESCRIPTION)):
            cache.parts.stranger(join(path, name))
        elif listing.get(name.removesuffix(_DESCRIPTION)) not in _DATA:  # what it describes went before
            _claim(cache, path, listing, [name], "download")


def _claim_extracted(cache: Cache, path: bytes) -> None:
    listing = read_names(cache.tree, path)
    if listing is None:
        cache.parts.claims.append(
            replace(cache.claim(path, (path,), "extracted", Cost.DOWNLOAD), keep=KeepReason.UNKNOWN)
        )
        return
    if not listing:
        cache.parts.known(path)
    for name, kind in listing.items():
        if kind in _DATA and HASHED.fullmatch(name):
            _claim(cache, path, listing, [name], "extracted")
        elif kind == stat.S_IFREG and name.endswith(LOCK):
            cache.parts.known(join(path, name))
        else:
            cache.parts.stranger(join(path, name))


def _claim_incomplete(cache: Cache, path: bytes, listing: Listing, name: bytes) -> None:
    claim = _made(cache, path, listing, [name], "partial")
    keep, abandoned = cache.guards(cache.age_ns(join(path, name)))
    cache.parts.claims.append(replace(claim, keep=keep, partial=abandoned))


def _claim(cache: Cache, path: bytes, listing: Listing, names: list[bytes], kind: str) -> None:
    cache.parts.claims.append(_made(cache, path, listing, names, kind))


def _made(cache: Cache, path: bytes, listing: Listing, names: list[bytes], kind: str) -> Claim:
    stem = names[0].removesuffix(INCOMPLETE).removesuffix(_DESCRIPTION)
    # `extract` puts `.lock` in place of the last ending (pathlib's with_suffix), `get_from_cache` behind it.
    ends = {stem + LOCK, stem.rpartition(b".")[0] + LOCK if b"." in stem else stem + LOCK}
    locks = tuple(join(path, each) for each in sorted(ends) if listing.get(each) == stat.S_IFREG)
    paths = tuple(join(path, name) for name in names)
    return replace(cache.claim(paths[0], paths, kind, Cost.DOWNLOAD), locks=locks)
