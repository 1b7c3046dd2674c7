"""Options and arguments that several commands share, and what their values may be.

Sizes and durations are parsed here and not by typer's types, so that an error names option, value and
reason: "--wait: '10' (a duration needs a unit …)".
"""

import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

from cachewarden.cli.complete import location_names
from cachewarden.paths import unshow
from cachewarden.units import parse_duration, parse_size

Location = Annotated[
    str | None,
    typer.Option(
        "--location",
        metavar="NAME",
        help="Only this location, by its name in the configuration (all matches of its glob).",
        autocompletion=location_names,
    ),
]
LocationArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[LOCATION]",
        help="Name of a location in the configuration. Left out: all of them.",
        autocompletion=location_names,
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, complete, for programs.")]
Wait = Annotated[
    str,
    typer.Option(
        "--wait", metavar="DURATION", help="Wait so long for a location that another pass is at work on."
    ),
]
Path = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="Where the entry is; anything inside it will do. For one of several that share a directory, "
        "the name that `cachewarden list` shows, after the location's path. A path that begins with a dash "
        "comes after --.",
    ),
]


def duration(option: str, text: str) -> int:
    """Nanoseconds. Raises a usage error that names the option and the value."""
    return _parsed(parse_duration, option, text)


def byte_count(option: str, text: str) -> int:
    """Bytes. Raises a usage error that names the option and the value."""
    return _parsed(parse_size, option, text)


def entry_path(text: str) -> bytes:
    """The absolute path that somebody means, by its true bytes or as `cachewarden list` shows them."""
    path = os.fsencode(text)
    if not path:
        raise typer.BadParameter("is empty", param_hint="PATH")
    if not os.path.lexists(path):
        path = unshow(text)
    if b"\0" in path:
        raise typer.BadParameter("a path cannot contain a NUL", param_hint="PATH")
    return os.path.normpath(os.path.join(os.getcwdb(), path))


def _parsed(parse: Callable[[Any], int], option: str, text: str) -> int:
    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r}: {error}", param_hint=option) from None
