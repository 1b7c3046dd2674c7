"""What the shell offers where a location's name is asked for."""

import os

import typer

from cachewarden.errors import CachewardenError
from cachewarden.settings import load


def location_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Configured names that begin like this. A broken configuration offers nothing, and says nothing."""
    given = ctx.find_root().params
    files = [os.fsencode(file) for file in given.get("config") or ()] or None
    try:
        settings = load(files, environ=os.environ, user=bool(given.get("user")))
    except (CachewardenError, OSError):
        return []
    return [each.name for each in settings.locations if each.name.startswith(incomplete)]
