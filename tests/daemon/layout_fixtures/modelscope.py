"""The cache of ModelScope, in both of its layouts."""

import os

from tests.daemon.layout_trees import NOW, put

STAYS = (b".lock/Qwen___Qwen3-0.6B", b"models/somebody/thesis/chapter")


def build(root: bytes) -> None:
    """Revisions of the newer layout beside models of the older one, with and without `hub`."""
    for revision in (b"master", b"v1.0"):
        put(root + b"/models/Qwen--Qwen3/snapshots/" + revision + b"/config.json")
        put(root + b"/models/Qwen--Qwen3/snapshots/" + revision + b"/sub/model.safetensors")
    put(root + b"/models/damo--nlp/snapshots/master/big.bin.incomplete", mtime_ns=NOW)
    put(root + b"/datasets/o--d/snapshots/master/data.csv")
    for place in (b"/models/Qwen/", b"/hub/models/iic/"):
        put(root + place + b"Qwen3-0___6B/.msc")
        put(root + place + b"Qwen3-0___6B/config.json")
    put(root + b"/models/._____temp/Qwen/left/model.safetensors")
    put(root + b"/models/._____temp/Qwen/running/model.safetensors", mtime_ns=NOW)
    os.utime(root + b"/models/._____temp/Qwen/left", ns=(1, 1))
    put(root + b"/models/somebody/thesis/chapter")
    put(root + b"/.lock/Qwen___Qwen3-0.6B", b"")
    put(root + b"/.download_state/x.json", b"{}")


def build_models(root: bytes) -> None:
    """The directory `models` as the location itself."""
    put(root + b"/._____temp/Qwen/x/f", mtime_ns=NOW)
    put(root + b"/Qwen/Qwen3/.msc")
    put(root + b"/Qwen/Qwen3/model.safetensors")
    put(root + b"/o--new/snapshots/master/f")


def usable(root, claim):
    """A directory that is there is taken for all of it."""
    path = root + b"/" + claim.name
    return os.path.isdir(path) and bool(os.listdir(path))
