"""Seeing a whole filesystem change with fanotify: names that come and go, and files that are written.

One mark for each filesystem, whatever the number of directories, where inotify needs a watch for each.
"""

from cachewarden.watch.structure.feed import STRUCTURE, StructureFeed

__all__ = ["STRUCTURE", "StructureFeed"]
