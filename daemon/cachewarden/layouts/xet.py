"""The cache of hf_xet: chunks of downloads, and shards that spare an upload what the server has already.

Facts read in xet-core (`chunk_cache/disk.rs`, `shard_file_handle.rs`, `cache_dir.rs`; tags v1.0.0 to v1.3.0
and August 2026). Readers of both kinds open files by path and take one that is gone for a miss. Since
hf_xet 1.3 nobody reads or bounds the chunks that older versions left, 10 GB by default.
"""

import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Claim, Split
from cachewarden.layouts.base import Context, Kind, directories, join, read_names
from cachewarden.layouts.parts import Parts
from cachewarden.tree import Tree
from cachewarden_policies.policy import DAY
from cachewarden_policies.reasons import Cost, KeepReason

_CHUNKS = b"chunk-cache"
_SHARDS = b"shard-cache"
_STAGING = b"staging"
_LOGS = b"logs"
# Of the endpoint's URL: its first 16 characters, and 16 of a hash in base64.
_ENDPOINT = re.compile(rb"[A-Za-z0-9_]{1,16}-[A-Za-z0-9_+-]{16}")
_PREFIX_LENGTH = 2
_KEY = re.compile(rb"[A-Za-z0-9_-]{20,}={0,2}")
_SHARD = re.compile(rb"[0-9a-f]{64}\.mdb")
_HALF_SHARD = re.compile(rb"\..+\.mdb_temp", re.DOTALL)


class XetLayout:
    """One directory of chunks, or one shard; uploads under way and logs are left to hf_xet."""

    name = "xet"
    shape = "`ENDPOINT-HASH` with `chunk-cache`, `shard-cache` or `staging` in it"
    unit = "the chunks of one key; one shard"
    locks = "none; hf_xet has none"
    never = (
        "`staging`, in which interrupted uploads go on; `logs`, which hf_xet prunes itself; everything else"
    )
    checked = "hf_xet 1.0 to 1.8"
    kinds: Mapping[str, Kind] = {
        "chunk": Kind(Cost.DERIVED, "`chunk-cache/XX/KEY`: nobody reads it since hf_xet 1.3"),
        "shard": Kind(Cost.REBUILD, "`shard-cache/HASH.mdb`: an upload asks the server again"),
        "partial": Kind(Cost.REBUILD, "`.ID.mdb_temp` older than `partial_max_idle`"),
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A directory with an endpoint's in it."""
        return any(
            _ENDPOINT.fullmatch(name) and _is_endpoint(tree.listing(join(at, name)))
            for name in directories(tree.listing(at))
        )

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """Claims of the chunks and shards of all endpoints."""
        parts = Parts(self.name, "a xet cache", at)
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if kind == stat.S_IFDIR and name == _LOGS:
                parts.known(path)
            elif kind == stat.S_IFDIR and _ENDPOINT.fullmatch(name) and _is_endpoint(tree.listing(path)):
                _claim_endpoint(tree, path, context, parts)
            else:
                parts.stranger(path)
        return parts.split()


def _is_endpoint(listing: Mapping[bytes, int]) -> bool:
    return any(listing.get(name) == stat.S_IFDIR for name in (_CHUNKS, _SHARDS, _STAGING))


def _claim_endpoint(tree: Tree, at: bytes, context: Context, parts: Parts) -> None:
    for name, kind in tree.listing(at).items():
        path = join(at, name)
        if kind == stat.S_IFDIR and name == _CHUNKS:
            _claim_chunks(tree, path, parts)
        elif kind == stat.S_IFDIR and name == _SHARDS:
            _claim_shards(tree, path, context, parts)
        elif kind == stat.S_IFDIR and name == _STAGING:
            parts.known(path)
        else:
            parts.stranger(path)


def _claim_chunks(tree: Tree, at: bytes, parts: Parts) -> None:
    for prefix, kind in tree.listing(at).items():
        path = join(at, prefix)
        listing = read_names(tree, path) if kind == stat.S_IFDIR and len(prefix) == _PREFIX_LENGTH else None
        if listing is None:
            parts.stranger(path)
            continue
        if not listing:
            parts.known(path)
        for name, kind_of_key in listing.items():
            key = join(path, name)
            if kind_of_key == stat.S_IFDIR and name.startswith(prefix) and _KEY.fullmatch(name):
                parts.claims.append(Claim(key, (key,), "chunk", "xet", Cost.DERIVED))
            else:
                parts.stranger(key)


def _claim_shards(tree: Tree, at: bytes, context: Context, parts: Parts) -> None:
    for name, kind in tree.listing(at).items():
        path = join(at, name)
        if kind == stat.S_IFREG and _SHARD.fullmatch(name):
            parts.claims.append(Claim(path, (path,), "shard", "xet", Cost.REBUILD))
        elif kind == stat.S_IFREG and _HALF_SHARD.fullmatch(name):
            parts.claims.append(_half_written(tree, path, context))
        else:
            parts.stranger(path)


def _half_written(tree: Tree, path: bytes, context: Context) -> Claim:
    there = tree.stat(path)
    age_ns = context.now_ns - there.st_mtime_ns if there is not None else 0
    limit = context.partial_max_idle
    keep = KeepReason.PARTIAL if age_ns <= (DAY if limit is None else limit) else None
    abandoned = limit is not None and keep is None
    return Claim(path, (path,), "partial", "xet", Cost.REBUILD, keep, partial=abandoned)
