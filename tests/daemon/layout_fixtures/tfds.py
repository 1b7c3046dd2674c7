"""Datasets of TensorFlow Datasets: downloaded ones, one's own, and downloads."""

import json
import os

from tests.daemon.layout_trees import NOW, put

STAYS = (b"mine/1.0.0/dataset_info.json", b"downloads/manual/imagenet.tar")


def version(path: bytes, **info: object) -> None:
    """A prepared version with what its `dataset_info.json` says."""
    put(path + b"/dataset_info.json", json.dumps(info).encode())
    put(path + b"/features.json", b"{}")
    put(path + b"/data-train.tfrecord-00000-of-00001")


def build(root: bytes) -> None:
    """With and without a configuration, two versions, a download that was left."""
    own = "tensorflow_datasets.image_classification.mnist"
    version(root + b"/mnist/3.0.1", name="mnist", downloadSize="11594722", moduleName=own)
    version(root + b"/mnist/3.0.0", name="mnist", downloadSize="11594722")
    version(root + b"/glue/cola/2.0.0", name="glue", downloadSize="376971", moduleName=own)
    version(root + b"/mine/1.0.0", name="mine", downloadSize="100", moduleName="thesis.data")
    put(root + b"/mnist/incomplete.AB12_3.1.0/f")
    os.utime(root + b"/mnist/incomplete.AB12_3.1.0", ns=(1, 1))
    put(root + b"/glue/cola/incomplete.CD34_2.0.1/f", mtime_ns=NOW)
    put(root + b"/downloads/cvdf_train.gz")
    put(root + b"/downloads/cvdf_train.gz.INFO", b"{}")
    put(root + b"/downloads/extracted/TAR.x/f")
    put(root + b"/downloads/manual/imagenet.tar")
    put(root + b"/notes.txt")


def usable(root, claim):
    """A version is there as a whole."""
    path = root + b"/" + claim.name
    if claim.kind in ("version", "own"):
        return {b"dataset_info.json", b"features.json"} < set(os.listdir(path))
    return all(os.path.exists(root + b"/" + each) for each in claim.paths)
