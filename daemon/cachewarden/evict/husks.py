"""Directories that a layout says are nothing without what was in them."""

import os
from collections.abc import Iterable

from cachewarden.evict.ground import Ground
from cachewarden.evict.staying import StaysError
from cachewarden.evict.traces import Traces
from cachewarden.tree import split_path


def remove_husks(husks: Iterable[bytes], ground: Ground, traces: Traces) -> None:
    """Remove those that are empty, deepest first. One that is not, or not there, stays silently."""
    for path in husks:
        parent, name = split_path(path)
        try:
            with traces.of_renaming(ground.directory(parent)):
                os.rmdir(name, dir_fd=ground.directory(parent))
        except (OSError, StaysError):
            continue
