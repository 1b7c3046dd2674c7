"""Two endpoints: chunks and shards of an older client, an upload that was interrupted, logs."""

import os

from tests.daemon.layout_trees import NOW, put

ENDPOINT = b"https___cas_serv-tGqkUaZf_CBPHQ6h"
OTHER = b"http___localhost-AAAAAAAAAAAAAAAA"
KEY = b"Zm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFy"
STAGING = ENDPOINT + b"/staging/shard-session/x7Kd/session.mdb"
STAYS = (STAGING, b"logs/xet_20260101T000000000_4711.log")


def build(root: bytes) -> None:
    """What hf_xet leaves, and a file that is not its own."""
    for key in (KEY, b"Zn" + KEY[2:], b"aaa-_" + KEY[5:] + b"=="):
        for name in (b"AAAAAAEAAAAAAAAA", b"AQAAAAEAAAAAAAAA"):
            put(root + b"/" + ENDPOINT + b"/chunk-cache/" + key[:2] + b"/" + key + b"/" + name)
    for digit in (b"0", b"f"):
        put(root + b"/" + ENDPOINT + b"/shard-cache/" + digit * 64 + b".mdb")
    put(root + b"/" + ENDPOINT + b"/shard-cache/.1b4e28ba.mdb_temp")
    put(root + b"/" + ENDPOINT + b"/shard-cache/.2b4e28ba.mdb_temp", mtime_ns=NOW)
    put(root + b"/" + OTHER + b"/shard-cache/" + b"1" * 64 + b".mdb")
    for name in STAYS:
        put(root + b"/" + name)
    put(root + b"/notes")


def usable(root, claim):
    """A key's chunks are all there; shards know nothing of each other."""
    if claim.kind == "chunk":
        return len(os.listdir(root + b"/" + claim.paths[0])) == 2
    return os.path.lexists(root + b"/" + claim.paths[0])
