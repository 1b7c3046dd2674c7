"""Loose files that belong together and go together: shards of one set, data with its index.

Half of a set is worse than none: `model-00002-of-00004.safetensors` without its siblings fails at
load and is never made again, because the others make it look complete.
"""

import re
from collections import defaultdict

_SHARD = re.compile(rb"(?P<stem>.+?)-\d{5}-of-\d{5}(?P<end>\.[A-Za-z0-9.]+)")
_INDEX = re.compile(rb"(?P<stem>.+?)(?P<end>\.[A-Za-z0-9]+)\.index\.json")
_PAIR = re.compile(rb"(?P<stem>.+)\.(bin|idx)")


def together(names: list[bytes]) -> list[tuple[bytes, ...]]:
    """The files `names` of one directory in groups that go whole, the index of each group first.

    Sets are told by the names that transformers (`-NNNNN-of-NNNNN`, `.index.json`) and Megatron
    (`.bin` with `.idx`) give; every other file is alone.
    """
    groups: dict[tuple[str, bytes], list[bytes]] = defaultdict(list)
    pairs = {name.removesuffix(b".idx") for name in names if name.endswith(b".idx")} & {
        name.removesuffix(b".bin") for name in names if name.endswith(b".bin")
    }
    for name in names:
        shard = _SHARD.fullmatch(name) or _INDEX.fullmatch(name)
        pair = _PAIR.fullmatch(name)
        if shard:
            groups["set", shard["stem"] + shard["end"]].append(name)
        elif pair and pair["stem"] in pairs:
            groups["pair", pair["stem"]].append(name)
        else:
            groups["alone", name].append(name)
    return [tuple(sorted(group, key=_witness_first)) for group in groups.values()]


def _witness_first(name: bytes) -> tuple[bool, bytes]:
    return not name.endswith((b".index.json", b".idx")), name
