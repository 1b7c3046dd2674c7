"""Entries of a store that a living server keeps: they go through the server, or not at all.

The server remembers what it has; a store that changes under it is listed wrongly until it starts again.
"""

from cachewarden.evict.served.evicting import Evicting, Served

__all__ = ["Evicting", "Served"]
