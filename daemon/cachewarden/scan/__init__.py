"""Measuring: a walk over a location, or over what changed in it, and the inventory that comes of it."""

from cachewarden.scan.measure import facts_of, remember, scan
from cachewarden.scan.remembered import (
    Again,
    Changed,
    Facts,
    Remembered,
    Stored,
    Totals,
    UnfitError,
    changes,
    measure_again,
    pack,
    unpack,
)

__all__ = [
    "Again",
    "Changed",
    "Facts",
    "Remembered",
    "Stored",
    "Totals",
    "UnfitError",
    "changes",
    "facts_of",
    "measure_again",
    "pack",
    "remember",
    "scan",
    "unpack",
]
