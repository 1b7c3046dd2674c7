"""A Triton cache, alone and in a home with what a user wrote himself."""

import json
import os

from tests.daemon.layout_trees import put

STAYS = ()
KEYS = (b"A" * 52, b"B" * 51 + b"7", b"short")


def build(root: bytes) -> None:
    """Three keys with their groups."""
    for key in KEYS:
        folder = root + b"/" + key
        members = {name: os.fsdecode(folder) + "/" + name for name in ("k.cubin", "k.json", "k.ttir")}
        for name in members:
            put(folder + b"/" + os.fsencode(name), json.dumps({"triton_version": "3.9.0"}).encode())
        put(folder + b"/__grp__k.json", json.dumps({"child_paths": members}).encode())


def build_home(root: bytes) -> None:
    """`~/.triton` with overrides, dumps and DeepSpeed's tables."""
    build(root + b"/cache")
    put(root + b"/override/" + KEYS[0] + b"/k.ttir")
    put(root + b"/dump/" + KEYS[0] + b"/k.ttir")
    put(root + b"/autotune/key.pickle")
    put(root + b"/autotune/key.pickle.lock", b"")


def usable(root, claim):
    """Every file that a group names is there, as older versions of Triton take for granted."""
    folder = root + b"/" + claim.name
    if claim.kind == "autotune":
        return os.path.exists(folder)
    groups = [name for name in os.listdir(folder) if name.startswith(b"__grp__")]
    for name in groups:
        with open(folder + b"/" + name) as file:
            children = json.load(file)["child_paths"]
        if not all(os.path.exists(folder + b"/" + os.fsencode(child)) for child in children):
            return False
    return bool(groups)
