"""What an Ollama manifest says: which blobs a model is made of, and whether it was made here.

A manifest is JSON with a `config` and `layers`, each with a `digest` (`manifest/manifest.go`,
`manifest/layer.go`). A manifest list names other manifests instead, which are blobs themselves.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

_LIST = "application/vnd.ollama.manifest.list.v2+json"
_DIGEST = re.compile(r"sha256[:-]([0-9a-fA-F]{64})")
# Read by whoever lists or shows the models; all other layers are what a model computes with.
_LISTED = frozenset(
    f"application/vnd.ollama.image.{each}"
    for each in ("license", "template", "system", "prompt", "params", "messages", "json")
)
_NAMED = re.compile(rb"sha256[:-]([0-9a-fA-F]{64})")

# How much of a manifest is read; the largest on the registry is far below. One that is longer is unclear.
LIMIT = 4 << 20

# 2024-08-01. The manifests that `ollama create` writes end in a newline, those of a pull do not
# (json.Encoder against json.Marshal, `manifest/manifest.go` and `server/images.go`); before the summer of
# 2024 neither did.
_TOLD_APART_SINCE_NS = 1_722_470_400 * 10**9


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as far as it is understood.

    `blobs` are the digests (hexadecimal, lower case) that it names anywhere: one too many only makes a blob
    stay. `weights` are those of them that are read only when the model runs. `references` are those of other
    manifests. `clear`: it names all that it uses; False also for text that is no manifest. `created`: it may
    have been made on this machine, so that no registry has it.
    """

    blobs: frozenset[bytes] = frozenset()
    weights: frozenset[bytes] = frozenset()
    references: frozenset[bytes] = frozenset()
    clear: bool = False
    created: bool = False


def parse(text: bytes, mtime_ns: int) -> Manifest:
    """Read a manifest; `mtime_ns` is when it was written. Whatever the text, there is an answer."""
    blobs = frozenset(match[1].lower() for match in _NAMED.finditer(text))
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return Manifest(blobs, created=True)
    if not isinstance(found, dict) or len(text) >= LIMIT:
        return Manifest(blobs, created=True)
    if found.get("mediaType") == _LIST:
        return _of_list(found.get("manifests"), blobs, created=_may_be_local(text, mtime_ns))
    layers = _layers(found)
    if layers is None:
        return Manifest(blobs, created=True)
    made = any(layer.get("from") for layer in layers) or _may_be_local(text, mtime_ns)
    weights = (each["digest"] for each in layers[1:] if each.get("digest") and not _is_listed(each))
    return Manifest(blobs, frozenset(map(_hexadecimal, weights)), clear=True, created=made)


def _is_listed(layer: dict[str, Any]) -> bool:
    kind = layer.get("mediaType")
    return isinstance(kind, str) and kind in _LISTED


def _hexadecimal(digest: str) -> bytes:
    return digest[7:].lower().encode()


def _may_be_local(text: bytes, mtime_ns: int) -> bool:
    return text.endswith(b"\n") or mtime_ns < _TOLD_APART_SINCE_NS


def _layers(manifest: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The config, and after it the layers; None when one of them is not what Ollama reads."""
    layers = manifest.get("layers")
    if not isinstance(layers, list) or not layers:
        return None
    found = [manifest.get("config") or {}, *layers]
    for each in found:
        if not isinstance(each, dict):
            return None
        digest = each.get("digest", "")
        if not isinstance(digest, str) or (digest and not _DIGEST.fullmatch(digest)):
            return None
    return found


def _of_list(children: Any, blobs: frozenset[bytes], *, created: bool) -> Manifest:
    """A list of manifests: references to blobs, or manifests written out.

    Of the latter Ollama keeps a blob too, named by the digest of a text of its own making: which that
    is, is not known here.
    """
    if not isinstance(children, list) or not children:
        return Manifest(blobs, created=True)
    references = set()
    clear = True
    for child in children:
        digest = child.get("digest") if isinstance(child, dict) else None
        match = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
        if match is None or "layers" in child or child.get("mediaType") == _LIST:
            clear = False
            created = created or not isinstance(child, dict) or _has_source(child)
        else:
            references.add(match[1].lower().encode())
    return Manifest(blobs, references=frozenset(references), clear=clear, created=created)


def _has_source(manifest: dict[str, Any]) -> bool:
    layers = _layers(manifest)
    return layers is None or any(layer.get("from") for layer in layers)
