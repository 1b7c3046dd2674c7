"""What the directories and loose files of a `.accelerate` folder are, told by what is in them.

Names of files come from accelerate 1.15 (`utils/constants.py`, `utils/offload.py`), transformers 5.24
(`trainer.py`) and datasets 5.2.
"""

import re
import stat
from collections.abc import Callable, Mapping
from enum import StrEnum

from cachewarden.layouts.base import directories, files
from cachewarden.layouts.local_dir import BELOW, speaks_of_downloads
from cachewarden.tree import Tree

Listing = Mapping[bytes, int]


class Shape(StrEnum):
    """A kind of directory; the value is the kind of its entries."""

    CHECKPOINT = "checkpoint"
    CONFIGURATION = "configuration"
    DATASET = "dataset"
    OFFLOAD = "offload"
    PREPARED = "prepared"


# What no program makes again: found below a directory, it keeps that directory from being one entry.
_TRAINING = re.compile(
    rb"optimizer(_\d+)?\.(bin|pt)|scheduler(_\d+)?\.(bin|pt)|sampler(_\d+)?\.bin|scaler\.pt"
    rb"|(dl_)?random_states_\d+\.pkl|rng_state(_\d+)?\.pth|trainer_state\.json|custom_checkpoint_\d+\.pkl"
    rb"|zero_pp_rank_\d+_.*|latest_checkpointed_iteration\.txt"
)
_TRAINING_PART = re.compile(
    rb"(pytorch_model|optimizer)_fsdp.*|(pytorch_model_fsdp|optimizer|optim)_\d+|global_step\d+"
)
_CHECKPOINT_NAME = re.compile(rb"checkpoint[_-]\d+")
_CONFIGURATION = re.compile(rb"(default_config|config|accelerate_config)\.(ya?ml|json)|[^/]*\.ya?ml")
_DEFAULT_CONFIGURATION = (b"default_config.yaml", b"default_config.json")
_PREPARED = re.compile(
    rb".*\.(arrow|parquet|tar|idx|index|mds|tfrecord|npy|faiss|hnsw|shard)|index\.json|shard[-_]?\d.*"
)
_CREDENTIALS = frozenset({b"token", b"stored_tokens"})


def is_configuration(name: bytes) -> bool:
    """Whether a loose file of this name is configuration or a project's state."""
    return _CONFIGURATION.fullmatch(name) is not None


def is_prepared(name: bytes) -> bool:
    """Whether a file of this name is a shard or an index that some program prepared."""
    return _PREPARED.fullmatch(name) is not None


def is_project_state(listing: Listing) -> bool:
    """Whether this is a `.accelerate` folder in which a workflow tool keeps a project's state."""
    return listing.get(b"state.yaml") == stat.S_IFREG


def holds_training_state(listing: Listing) -> bool:
    """Whether these are the contents of a checkpoint: of `save_state`, of a trainer, FSDP, DeepSpeed."""
    return any(_TRAINING.fullmatch(name) for name in files(listing)) or any(
        _TRAINING_PART.fullmatch(name) for name in directories(listing)
    )


def has_default_configuration(listing: Listing) -> bool:
    """Whether accelerate's own configuration file is among these names."""
    return any(listing.get(name) == stat.S_IFREG for name in _DEFAULT_CONFIGURATION)


def is_checkpoint_name(name: bytes) -> bool:
    """Whether a directory of this name is a checkpoint, or holds a run's checkpoints."""
    return name == b"checkpoints" or _CHECKPOINT_NAME.fullmatch(name) is not None


def is_irreplaceable(path: bytes, listing: Listing) -> bool:
    """Whether the directory `path` itself shows that no program makes again what is in it."""
    return bool(listing) and (
        is_checkpoint_name(path.rpartition(b"/")[2])
        or holds_training_state(listing)
        or has_default_configuration(listing)
        or _holds_saved_dataset(listing)
        or _is_below_local(path, listing)
        or any(listing.get(name) == stat.S_IFREG for name in _CREDENTIALS)
    )


def shape_of(tree: Tree, path: bytes, listing: Listing) -> Shape | None:
    """The shape of the directory `path`, whose names are `listing`; None when it is like nothing we know.

    What cannot be made again is looked for first: a folder that is both goes by what it would lose.
    Hub trees are for the hub layout to recognise.
    """
    return next((shape for shape, fits in _SHAPES if fits(tree, path, listing)), None)


def _is_checkpoint(_tree: Tree, path: bytes, listing: Listing) -> bool:
    return _CHECKPOINT_NAME.fullmatch(path.rpartition(b"/")[2]) is not None or holds_training_state(listing)


def _is_configuration_only(_tree: Tree, _path: bytes, listing: Listing) -> bool:
    return has_default_configuration(listing) and not directories(listing)


def _is_saved_dataset(_tree: Tree, _path: bytes, listing: Listing) -> bool:
    return _holds_saved_dataset(listing)


def _is_below_local(path: bytes, listing: Listing) -> bool:
    return path.endswith(b"/" + BELOW) and speaks_of_downloads(listing)


def _holds_saved_dataset(listing: Listing) -> bool:
    # `save_to_disk` writes these; a dataset that was merely prepared has no `state.json`.
    return b"dataset_dict.json" in listing or (b"state.json" in listing and b"dataset_info.json" in listing)


def _is_offload(_tree: Tree, _path: bytes, listing: Listing) -> bool:
    return b"index.json" in listing and any(name.endswith(b".dat") for name in files(listing))


def _is_prepared_only(_tree: Tree, _path: bytes, listing: Listing) -> bool:
    names = files(listing)
    return bool(names) and not directories(listing) and all(is_prepared(name) for name in names)


_SHAPES: tuple[tuple[Shape, Callable[[Tree, bytes, Listing], bool]], ...] = (
    (Shape.CHECKPOINT, _is_checkpoint),
    (Shape.CONFIGURATION, _is_configuration_only),
    (Shape.DATASET, _is_saved_dataset),
    (Shape.OFFLOAD, _is_offload),
    (Shape.PREPARED, _is_prepared_only),
)
