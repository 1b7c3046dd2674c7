"""Caches of compilers and of runtimes that compile: everything in them can be computed again."""

from cachewarden.layouts.base import Layout
from cachewarden.layouts.compilers.compute_cache import ComputeCache
from cachewarden.layouts.compilers.deepspeed import DeepspeedSwap
from cachewarden.layouts.compilers.engines import OrtTensorrt, TorchTensorrt
from cachewarden.layouts.compilers.flashinfer import Flashinfer
from cachewarden.layouts.compilers.inductor import Inductor
from cachewarden.layouts.compilers.jax import Jax
from cachewarden.layouts.compilers.jiterator import Jiterator
from cachewarden.layouts.compilers.miopen import Miopen
from cachewarden.layouts.compilers.numba import Numba
from cachewarden.layouts.compilers.openvino import Openvino
from cachewarden.layouts.compilers.sglang import Sglang
from cachewarden.layouts.compilers.torch_extensions import TorchExtensions
from cachewarden.layouts.compilers.triton import Triton
from cachewarden.layouts.compilers.vllm import Vllm

# Those that hold others first.
COMPILERS: tuple[Layout, ...] = (
    Vllm(),
    Sglang(),
    Inductor(),
    Triton(),
    TorchExtensions(),
    Jiterator(),
    ComputeCache(),
    Flashinfer(),
    Jax(),
    OrtTensorrt(),
    TorchTensorrt(),
    Openvino(),
    Numba(),
    Miopen(),
    DeepspeedSwap(),
)
