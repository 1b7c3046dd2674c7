"""What `torch.compile` leaves: graphs, generated code, Triton's kernels, locks."""

import os

from tests.daemon.layout_fixtures import triton
from tests.daemon.layout_trees import put

STAYS = (b"locks/fabc.lock", b"cache/system", b"hj/cprefix.h", b"mine/thesis")
CODE = b"cab" + b"a" * 49


def build(root: bytes) -> None:
    """One graph with two variants, and all that belongs to it."""
    for key in (b"fabc", b"fxyz"):
        for variant in (b"one", b"two"):
            put(root + b"/fxgraph/" + key[1:3] + b"/" + key + b"/" + variant)
    put(root + b"/aotautograd/akey/one")
    put(root + b"/ab/" + CODE + b".py")
    put(root + b"/cd/" + CODE + b".cpp")
    put(root + b"/cd/" + CODE + b".so")
    put(root + b"/hj/cprefix.h")
    put(root + b"/hj/c" + b"h" * 51 + b".h")
    triton.build(root + b"/triton/0")
    put(root + b"/locks/fabc.lock", b"")
    put(root + b"/locks/" + CODE + b".lock", b"")
    put(root + b"/cache/system")
    put(root + b"/memoizer_cache.json", b"{}")
    put(root + b"/mine/thesis")


def usable(root, claim):
    """A directory is there with all that was written into it: half of one is worse than none."""
    return bool(os.listdir(root + b"/" + claim.name))
