"""Engines of ONNX Runtime, and engines that a model names."""

import os

from tests.daemon.layout_trees import put

STAYS = (b"TensorrtExecutionProvider_cache_sm80.timing", b"model.onnx")
STEM = b"TensorrtExecutionProvider_TRTKernel_graph_main_123_0_0_fp16_sm80"


def build(root: bytes) -> None:
    """Engines with and without a profile, one without weights."""
    put(root + b"/" + STEM + b".engine")
    put(root + b"/" + STEM + b".profile")
    put(root + b"/mine_sm80+.engine")
    put(root + b"/other_sm90.stripped.engine")
    put(root + b"/secret_sm90.engine.encrypted")
    put(root + b"/TensorrtExecutionProvider_cache_sm80.timing")
    put(root + b"/model.onnx")


def build_named(root: bytes) -> None:
    """A model with a context names its engine."""
    build(root)
    put(root + b"/model_ctx.onnx")


def usable(root, claim):
    """Engine and profile are both there."""
    return all(os.path.isfile(root + b"/" + path) for path in claim.paths)
