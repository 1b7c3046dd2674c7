"""The older cache of llama.cpp: models with their etags, splits, downloads."""

import os

from tests.daemon.layout_trees import NOW, put

STAYS = (b"mine.gguf", b"manifest=ggml-org=m=latest.json", b"rpc/1234")


def build(root: bytes) -> None:
    """A model of either age, a split one, one without a mark."""
    put(root + b"/ggml-org_m-Q4.gguf")
    put(root + b"/ggml-org_m-Q4.gguf.etag")
    put(root + b"/old.gguf")
    put(root + b"/old.gguf.json", b"{}")
    for number in (b"1", b"2"):
        put(root + b"/big-0000" + number + b"-of-00002.gguf")
        put(root + b"/big-0000" + number + b"-of-00002.gguf.etag")
    put(root + b"/mine.gguf")
    put(root + b"/gone.gguf.etag")
    put(root + b"/left.gguf.downloadInProgress")
    put(root + b"/running.gguf.downloadInProgress", mtime_ns=NOW)
    put(root + b"/manifest=ggml-org=m=latest.json", b"{}")
    put(root + b"/rpc/1234")


def usable(root, claim):
    """Every split is there, with its etag: a file without one is downloaded again."""
    return all(os.path.isfile(root + b"/" + path) for path in claim.paths)
