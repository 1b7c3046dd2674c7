"""What a user of a compiler runs: something small that is compiled, with its cache where the tests say.

Run as a script with the tool's name and whatever it takes. It does not know cachewarden. Each tool prints one
line with the result, so that the tests see whether it is the same with and without a cache.
"""

import hashlib
import os
import sys

LIMIT = "JAX_LIMIT"


def torch() -> str:
    """`torch.compile` of a function and its gradient, into `TORCHINDUCTOR_CACHE_DIR`."""
    import torch  # noqa: PLC0415 - each tool is a world of its own

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (torch.sin(x) + y * 2).sum()

    x = torch.arange(64.0, requires_grad=True)
    result = torch.compile(function)(x, torch.ones(64))
    result.backward()
    assert x.grad is not None
    return f"{result.item():.4f} {x.grad.sum().item():.4f}"


def numba() -> str:
    """Two cached functions, into `NUMBA_CACHE_DIR`; prints results, hits and misses."""
    from tests.system.compile_functions import double, total  # noqa: PLC0415 - numba caches what is in a module

    results = (double(3), double(2.5), total(10))
    hits = sum(sum(each.stats.cache_hits.values()) for each in (double, total))
    misses = sum(sum(each.stats.cache_misses.values()) for each in (double, total))
    return f"{results} {hits} {misses}"


def jax(factor: str) -> str:
    """Two jitted functions of which the factor is a part, into `JAX_COMPILATION_CACHE_DIR`."""
    import jax  # noqa: PLC0415 - each tool is a world of its own
    from jax import numpy  # noqa: PLC0415

    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if LIMIT in os.environ:
        jax.config.update("jax_compilation_cache_max_size", int(os.environ[LIMIT]))
    made = jax.jit(lambda x: numpy.sin(x) + x * int(factor))(numpy.arange(4.0))
    return f"{float(made.sum()):.4f}"


def triton() -> str:
    """One kernel, compiled for a GPU that need not be there, into `TRITON_CACHE_DIR`."""
    import triton  # noqa: PLC0415 - each tool is a world of its own
    from tests.system.compile_kernel import add  # noqa: PLC0415 - Triton reads the source of a module
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415
    from triton.compiler import ASTSource  # noqa: PLC0415

    signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "block": "constexpr"}
    source = ASTSource(fn=add, signature=signature, constexprs={"block": 128})
    compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32))
    return hashlib.sha256(compiled.asm["cubin"]).hexdigest()


if __name__ == "__main__":
    print({"torch": torch, "numba": numba, "jax": jax, "triton": triton}[sys.argv[1]](*sys.argv[2:]))
