"""Noticing changes between two passes, with fanotify or inotify. A hint, never the truth: passes measure."""

from cachewarden.watch.structure import STRUCTURE
from cachewarden.watch.watcher import Watcher, WatchMode
from cachewarden.watch.watching import Legacy, Told, Watching

__all__ = ["STRUCTURE", "Legacy", "Told", "WatchMode", "Watcher", "Watching"]
