"""Functions that numba compiles for the tests; it caches what has a file."""

import numba


@numba.njit(cache=True)
def double(x):
    """Compiled for whole numbers and for others: two overloads."""
    return x * 2 + 1


@numba.njit(cache=True)
def total(count):
    """A loop."""
    found = 0
    for number in range(count):
        found += number
    return found
