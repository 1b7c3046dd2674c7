"""A home of Keras: configuration, downloads, models that were saved there."""

import os

from tests.daemon.layout_trees import link, put

STAYS = (b"keras.json", b"models/mine.keras", b"models/exported/saved_model.pb")


def build(root: bytes) -> None:
    """Downloads of one file, of an archive, and what is nobody's."""
    put(root + b"/keras.json", b"{}")
    put(root + b"/datasets/mnist.npz")
    put(root + b"/datasets/cifar-10-batches-py_archive")
    put(root + b"/datasets/cifar-10-batches-py/batch_1")
    put(root + b"/datasets/flowers.tar.gz")
    put(root + b"/datasets/flowers_extracted/rose.jpg")
    put(root + b"/models/vgg16_weights.h5")
    put(root + b"/models/mine.keras")
    put(root + b"/models/exported/saved_model.pb")
    link(root + b"/datasets/big", b"/data/big")


def usable(root, claim):
    """An archive and what was unpacked from it are both there."""
    return all(os.path.exists(root + b"/" + path) for path in claim.paths)
