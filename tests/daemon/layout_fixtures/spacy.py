"""Python packages with a model of spaCy among them."""

import os

from tests.daemon.layout_trees import put

STAYS = (
    b"en_core_web_sm/meta.json",
    b"numpy/__init__.py",
)


def build(root: bytes) -> None:
    """A site-packages."""
    put(root + b"/en_core_web_sm/meta.json", b"{}")
    put(root + b"/en_core_web_sm/en_core_web_sm-3.8.0/config.cfg")
    put(root + b"/en_core_web_sm-3.8.0.dist-info/METADATA")
    put(root + b"/numpy/__init__.py")


def usable(root, claim):
    """It is there."""
    return os.path.lexists(root + b"/" + claim.name)
