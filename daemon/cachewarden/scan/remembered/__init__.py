"""Measuring again only what may have changed since a walk, and keeping what was measured over a restart."""

from cachewarden.scan.remembered.again import Again, measure_again
from cachewarden.scan.remembered.changed import Changed, changes
from cachewarden.scan.remembered.stored import Stored, Totals, UnfitError, pack, unpack
from cachewarden.scan.remembered.value import Facts, Remembered

__all__ = [
    "Again",
    "Changed",
    "Facts",
    "Remembered",
    "Stored",
    "Totals",
    "UnfitError",
    "changes",
    "measure_again",
    "pack",
    "unpack",
]
