"""Caches as frameworks leave them, for the demo and for tests that must run without the frameworks."""

import json
import os
import random
from collections.abc import Sequence

from tests.system.hub_client import download, run_client
from tests.system.hub_endpoint import Hub
from tests.system.trees import write


def hub_cache(hub: Hub, cache: str, repos: Sequence[str]) -> None:
    """Download repositories with the real client, in this order. Raises AssertionError when one fails."""
    for repo, answer in zip(repos, run_client(hub.url, cache, *map(download, repos)), strict=True):
        assert "path" in answer, f"{repo} could not be downloaded: {answer}"


def offload_folder(path: str, mebibytes: float, layers: int = 4) -> None:
    """What `accelerate.disk_offload` writes: one `.dat` of raw float32 per tensor, and `index.json`.

    Same names and same format as accelerate 1.15 (utils/offload.py: `offload_weight`,
    `save_offload_index`); the weights are random.
    """
    os.makedirs(path, exist_ok=True)
    width = int((mebibytes * 2**20 / layers / 4) ** 0.5)
    index = {}
    for layer in range(layers):
        for name, shape in ((f"{layer}.weight", [width, width]), (f"{layer}.bias", [width])):
            index[name] = {"dtype": "float32", "shape": shape}
            size = 4 * (width * width if len(shape) == 2 else width)
            with open(os.path.join(path, f"{name}.dat"), "wb") as file:
                file.write(random.Random(name).randbytes(size))
    write(os.path.join(path, "index.json"), json.dumps(index, indent=2))


def checkpoint(path: str, mebibytes: float) -> None:
    """What `Accelerator.save_state` writes into `checkpoint_N`: a training state that nothing rebuilds."""
    os.makedirs(path, exist_ok=True)
    parts = {
        "model.safetensors": 0.3,
        "optimizer.bin": 0.6,
        "scheduler.bin": 0.05,
        "random_states_0.pkl": 0.05,
    }
    for name, share in parts.items():
        with open(os.path.join(path, name), "wb") as file:
            file.write(random.Random(name).randbytes(int(mebibytes * share * 2**20)))


def configuration(root: str) -> None:
    """The user's own answers to `accelerate config`."""
    write(
        os.path.join(root, "default_config.yaml"),
        "compute_environment: LOCAL_MACHINE\nmixed_precision: bf16\n",
    )
