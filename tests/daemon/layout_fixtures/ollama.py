"""A store of Ollama: pulled and created models, shared layers, both places of manifests, leftovers."""

import hashlib
import json
import os

from tests.daemon.layout_trees import NOW, link, put

STAYS = (b"manifests/registry.ollama.ai/library/mine/latest",)
REGISTRY = b"registry.ollama.ai/library/"


def digest(text: bytes) -> str:
    """As manifests name blobs."""
    return "sha256:" + hashlib.sha256(text).hexdigest()


def blob(store: bytes, text: bytes) -> str:
    """A blob of the store; its digest."""
    name = digest(text)
    put(store + b"/blobs/" + name.replace(":", "-").encode(), text)
    return name


def manifest(store: bytes, *layers: bytes, created: bool = False, source: str | None = None) -> bytes:
    """The text of a manifest of these layers, which become blobs, as a pull or a `create` writes it."""
    config = blob(store, b"config of " + b"".join(layers))
    found = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {
            "mediaType": "application/vnd.docker.container.image.v1+json",
            "digest": config,
            "size": 10,
        },
        "layers": [
            {
                "mediaType": "application/vnd.ollama.image.model",
                "digest": blob(store, each),
                "size": len(each),
            }
            | ({"from": source} if source else {})
            for each in layers
        ],
    }
    return json.dumps(found, separators=(",", ":")).encode() + (b"\n" if created else b"")


def model(
    store: bytes, name: bytes, *layers: bytes, created: bool = False, source: str | None = None
) -> bytes:
    """A named manifest (HOST/NAMESPACE/MODEL/TAG); its path in the store."""
    path = b"manifests/" + name
    put(store + b"/" + path, manifest(store, *layers, created=created, source=source))
    return path


def linked_model(store: bytes, name: bytes, text: bytes) -> bytes:
    """A name in `manifests-v2` that is a link to the blob of its manifest."""
    path = b"manifests-v2/" + name
    target = blob(store, text).replace(":", "-").encode()
    link(store + b"/" + path, b"../../../../blobs/" + target)
    return path


def build(root: bytes) -> None:
    """Three models share a licence; one was made here; downloads and an orphan."""
    for name in (b"llama/8b", b"qwen/latest", b"phi/latest"):
        model(root, REGISTRY + name, b"weights of " + name, b"licence")
    model(root, REGISTRY + b"mine/latest", b"my weights", created=True)
    model(root, REGISTRY + b"derived/latest", b"weights of llama/8b", b"my system", source="/models/llama")
    linked_model(root, b"hf.co/bartowski/Llama-GGUF/Q4_K_M", manifest(root, b"gguf"))
    blob(root, b"nobody's")
    stem = b"/blobs/sha256-" + b"e" * 64 + b"-partial"
    for suffix in (b"", b"-0", b"-1"):
        put(root + stem + suffix)
    put(root + b"/blobs/sha256-" + b"f" * 64 + b"-partial", mtime_ns=NOW)
    put(root + b"/blobs/sha256-123456", mtime_ns=NOW)
    put(root + b"/blobs/mine.gguf")


def build_home(root: bytes) -> None:
    """The directory around the store, with keys and settings."""
    for name in (b"id_ed25519", b"id_ed25519.pub", b"config.json", b"logs/server.log", b"db.sqlite"):
        put(root + b"/" + name)
    build(root + b"/models")


def usable(root, claim):
    """The manifest is there, and every blob that it names: else `ollama run` fails."""
    if claim.kind not in ("model", "created"):
        return all(os.path.lexists(root + b"/" + path) for path in claim.paths)
    with open(root + b"/" + claim.paths[0], "rb") as file:
        found = json.load(file)
    store = root + b"/models" if claim.paths[0].startswith(b"models/") else root
    names = [layer["digest"].replace(":", "-") for layer in (found["config"], *found["layers"])]
    return all(os.path.isfile(store + b"/blobs/" + name.encode()) for name in names)
