"""The cache of torch.hub: weights, repositories of code, trust."""

import os

from tests.daemon.layout_trees import NOW, put

STAYS = (b"trusted_list", b"stranger_of_mine_main/hubconf.py")


def build(root: bytes) -> None:
    """Weights with and without a hash, a listed repository, and one that is trusted because it is there."""
    put(root + b"/trusted_list", b"ultralytics_yolov5\n")
    for name in (b"resnet50-11ad3fa6.pth", b"dinov2_vitb14_pretrain.pth", b"hubert-0123456789abcdef.pt"):
        put(root + b"/checkpoints/" + name)
    put(root + b"/checkpoints/vit-11ad3fa6.pth." + b"a" * 32 + b".partial")
    put(root + b"/checkpoints/vit-11ad3fa6.pth." + b"b" * 32 + b".partial", mtime_ns=NOW)
    for name in (b"ultralytics_yolov5_master", b"pytorch_vision_v0.10.0", b"stranger_of_mine_main"):
        put(root + b"/" + name + b"/hubconf.py")
        put(root + b"/" + name + b"/models/model.py")
    put(root + b"/main.zip", mtime_ns=NOW)
    put(root + b"/notes.txt")


def build_weights(root: bytes) -> None:
    """The directory `checkpoints` as the location itself."""
    for name in (b"resnet50-11ad3fa6.pth", b"vgg16-397923af.pth", b"my_own.pth"):
        put(root + b"/" + name)


def usable(root, claim):
    """The file is there; of a repository, what is loaded from it."""
    path = root + b"/" + claim.name
    return os.path.isfile(path + b"/hubconf.py" if claim.kind == "repository" else path)
