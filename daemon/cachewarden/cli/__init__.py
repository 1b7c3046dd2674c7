"""The command line: it asks `service.House`, and shows what that answers."""

from cachewarden.cli.entry import main

__all__ = ["main"]
