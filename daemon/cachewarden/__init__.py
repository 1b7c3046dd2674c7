"""The daemon: everything of cachewarden that touches the world."""

__version__ = "0.1.0"
