"""A whole `$HF_HOME`: a hub cache, prepared datasets, xet, modules, assets, credentials, a stranger."""

import os

from tests.daemon.layout_fixtures import datasets, hub, modules, xet
from tests.daemon.layout_trees import put

STAYS = (
    b"token",
    b"stored_tokens",
    b"accelerate/default_config.yaml",
    b"sandbox/pools/host.json",
    b"assets/library/namespace/file",
    b"mine/file",
    *(b"hub/" + name for name in hub.STAYS),
    *(b"datasets/" + name for name in datasets.STAYS),
    *(b"xet/" + name for name in xet.STAYS),
    *(b"modules/" + name for name in modules.STAYS),
)


def build(root: bytes) -> None:
    """Everything at its usual place."""
    for name, layout in (("hub", hub), ("datasets", datasets), ("xet", xet), ("modules", modules)):
        layout.build(root + b"/" + name.encode())
    for name in STAYS:
        if not os.path.lexists(root + b"/" + name):
            put(root + b"/" + name)
    put(root + b"/.check_for_update_done", b"")


def usable(root, claim):
    """It has no entries of its own."""
    return os.path.lexists(root + b"/" + claim.name)
