"""A kernel that Triton compiles for the tests; it reads the source of a file."""

import triton
from triton import language as tl


@triton.jit
def add(x, y, n, block: tl.constexpr):
    """One more, for each number."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    inside = place < n
    tl.store(y + place, tl.load(x + place, mask=inside) + 1.0, mask=inside)
