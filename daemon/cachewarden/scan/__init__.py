"""Measuring: one walk over a location, and the inventory that comes of it."""

from cachewarden.scan.measure import scan

__all__ = ["scan"]
