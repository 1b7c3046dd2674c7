"""Noticing changes between two passes, with inotify. A hint, never the truth: passes measure."""

from cachewarden.watch.watcher import Watcher, WatchMode

__all__ = ["WatchMode", "Watcher"]
