"""A datasets cache: prepared from the hub, from files and by a function; mapped; downloaded; unpacked."""

import json
import os

from tests.daemon.layout_trees import NOW, put

HASH = b"ab" * 32
SAVED = b"kept/default/0.0.0/mine"
STAYS = (
    SAVED + b"/state.json",
    b"generator/default-1f/0.0.0/dataset_info.json",
    b"generator/default-1f/0.0.0/generator-train.arrow",
    b"downloads/" + HASH + b".lock",
    b"org___name/default/0.0.0/" + HASH + b"_builder.lock",
    b"notes.txt",
)


def info(builder: str = "parquet", size: int = 1000) -> bytes:
    """The part of `dataset_info.json` that says where a dataset came from."""
    return json.dumps({"builder_name": builder, "download_size": size, "splits": {}}).encode()


def prepared(path: bytes, name: bytes = b"name", builder: str = "parquet", *, lock: bool = True) -> bytes:
    """What a builder leaves; the directory's path."""
    put(path + b"/dataset_info.json", info(builder))
    put(path + b"/" + name + b"-train-00000-of-00002.arrow")
    put(path + b"/" + name + b"-train-00001-of-00002.arrow")
    if lock:
        put(path + b"_builder.lock", b"")
        put(path + b".incomplete_info.lock", b"")
    return path


def build(root: bytes) -> None:
    """All kinds of entries, half of everything, and what must stay."""
    first = prepared(root + b"/org___name/default/0.0.0/" + HASH)
    put(root + b"/_home_anna_.cache_huggingface_datasets_org___name_default_0.0.0_" + HASH + b".lock", b"")
    put(first + b"/cache-0123456789abcdef.arrow")
    for rank in (b"0", b"1"):
        put(first + b"/cache-fedcba9876543210_0000" + rank + b"_of_00002.arrow")
    put(first + b"/tmpabcd1234")
    prepared(root + b"/org___name/default/0.0.0/" + b"cd" * 8)
    prepared(root + b"/json/default-77/0.0.0/" + HASH, b"json", "json")
    generated = root + b"/generator/default-1f/0.0.0"
    put(generated + b"/dataset_info.json", info("generator"))
    put(generated + b"/generator-train.arrow")
    put(generated + b"/cache-0000000000000001.arrow")
    put(root + b"/org___half/default/0.0.0/" + HASH + b"/half-train.arrow")
    put(root + b"/org___orphan/default/0.0.0/" + HASH + b"/cache-0000000000000002.arrow")
    put(root + b"/org___torn/default/0.0.0/" + HASH + b"/dataset_info.json", b'{"builder_name": ')
    put(root + b"/org___name/default/0.0.0/" + b"ef" * 32 + b".incomplete/name-train.arrow")
    put(root + b"/org___name/default/0.0.0/" + b"fe" * 32 + b".incomplete/name-train.arrow", mtime_ns=NOW)
    os.makedirs(root + b"/org___empty/default/0.0.0/" + HASH)
    put(root + b"/" + SAVED + b"/state.json")
    put(root + b"/" + SAVED + b"/data-00000-of-00001.arrow")
    put(root + b"/notes.txt")
    put(root + b"/strange/file")
    build_downloads(root + b"/downloads")


def build_downloads(root: bytes) -> None:
    """Downloads alone, as `HF_DATASETS_DOWNLOADED_DATASETS_PATH` puts them elsewhere."""
    for name in (HASH, HASH + b"." + b"0" * 64, b"1" * 64 + b".h5"):
        put(root + b"/" + name)
        put(root + b"/" + name + b".json", b'{"url": "https://example.org/x.gz", "etag": null}')
        put(root + b"/" + name + b".lock", b"")
    put(root + b"/" + b"2" * 64 + b".incomplete")
    put(root + b"/" + b"3" * 64 + b".json", b"{}")
    put(root + b"/extracted/" + HASH + b"/inner/file")
    put(root + b"/extracted/" + HASH + b".lock", b"")
    put(root + b"/extracted/" + b"4" * 64)
    put(root + b"/README")


def usable(root, claim):
    """A description without an Arrow file is an error for ever; results of `map` are files of their own."""
    there = [os.path.lexists(root + b"/" + path) for path in claim.paths]
    if claim.kind == "prepared" and b"/dataset_info.json" in claim.paths[0]:
        return all(there)
    return all(there) and all(os.path.isdir(root + b"/" + husk) for husk in claim.husks)
