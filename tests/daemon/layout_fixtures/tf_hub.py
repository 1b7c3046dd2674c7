"""The cache of TensorFlow Hub."""

import os

from tests.daemon.layout_trees import NOW, put

STAYS = (b"c" * 40 + b".lock", b"mine/saved_model.pb")


def build(root: bytes) -> None:
    """Modules with and without a description, a download that runs and one that was left."""
    for name in (b"a" * 40, b"b" * 40):
        put(root + b"/" + name + b"/saved_model.pb")
        put(root + b"/" + name + b"/variables/variables.index")
    put(root + b"/" + b"a" * 40 + b".descriptor.txt")
    put(root + b"/" + b"c" * 40 + b"." + b"1" * 32 + b".tmp/saved_model.pb", mtime_ns=NOW)
    put(root + b"/" + b"c" * 40 + b".lock", b"host.1.uid")
    put(root + b"/" + b"d" * 40 + b"." + b"2" * 32 + b".tmp/saved_model.pb")
    os.utime(root + b"/" + b"d" * 40 + b"." + b"2" * 32 + b".tmp", ns=(1, 1))
    put(root + b"/mine/saved_model.pb")


def usable(root, claim):
    """All of a module is there: a part of it would be taken for all."""
    path = root + b"/" + claim.name
    if claim.kind == "partial":
        return os.path.isdir(path)
    return os.path.isfile(path + b"/saved_model.pb") and os.path.isfile(path + b"/variables/variables.index")
