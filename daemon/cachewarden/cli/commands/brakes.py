"""`confirm`, `pause`, `resume`: what people allow and forbid."""

from typing import Annotated

import typer

from cachewarden.cli.blocks import EMPTY, good, line, strong, warn
from cachewarden.cli.complete import location_names
from cachewarden.cli.face import face_of, now_ns
from cachewarden.cli.options import LocationArgument, duration
from cachewarden.cli.views.plans import plan_blocks
from cachewarden.cli.words import entries, size, until

_CONFIRM = """\b
Examples:
  sudo cachewarden confirm models
  sudo cachewarden confirm models --for 15m
"""
_PAUSE = """\b
Examples:
  sudo cachewarden pause                     everything, until `resume`
  sudo cachewarden pause models --for 8h
"""
_RESUME = """\b
Examples:
  sudo cachewarden resume
  sudo cachewarden resume models
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog=_CONFIRM, short_help="Let a waiting location go on.")(confirm)
    app.command(epilog=_PAUSE, short_help="Evict nothing for a while.")(pause)
    app.command(epilog=_RESUME, short_help="Take a pause back.")(resume)


def confirm(
    ctx: typer.Context,
    location: Annotated[
        str,
        typer.Argument(
            metavar="LOCATION",
            help="Name of the location in the configuration.",
            autocompletion=location_names,
            show_default=False,
        ),
    ],
    lasting: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="How long the confirmation holds.")
    ] = "1h",
) -> None:
    """Let a location go beyond max_share: it waits because a pass would remove more than that.

    Shows what it confirms first: entries, bytes and the deadline. A running service acts at once; without
    one, run `cachewarden once` before the deadline.
    """
    face = face_of(ctx)
    for_ns = duration("--for", lasting)
    with face.house("confirm") as house:
        confirmed = house.confirmable(location)
        gone = [each for found in confirmed.locations for each in found.evicted]
        face.screen.show([*plan_blocks(confirmed, now_ns()), EMPTY])
        deadline = house.confirm(location, for_ns=for_ns)
        woken = house.wake_service()
    said = f"{location}: {entries(len(gone))}, {size(sum(each.bytes for each in gone))} may go "
    face.screen.show([line(good("confirmed "), said, strong(until(deadline, now_ns())))])
    if not woken:
        face.screen.say("no service is running: `cachewarden once` evicts them, before the deadline")


def pause(
    ctx: typer.Context,
    location: LocationArgument = None,
    lasting: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="For so long (8h). Left out: until `resume`."),
    ] = None,
) -> None:
    """Evict nothing for a while, from one location or from all. Measuring goes on."""
    face = face_of(ctx)
    for_ns = None if lasting is None else duration("--for", lasting)
    with face.house("pause") as house:
        until_ns = house.pause(location, for_ns=for_ns)
    what = location or "all locations"
    how_long = until(until_ns, now_ns()) if until_ns is not None else "until `cachewarden resume`"
    face.screen.show([line(warn("paused "), f"{what} {how_long}: nothing goes by itself")])


def resume(ctx: typer.Context, location: LocationArgument = None) -> None:
    """Take a pause back. Without LOCATION: all pauses."""
    face = face_of(ctx)
    with face.house("resume") as house:
        house.resume(location)
        house.wake_service()
    face.screen.show([line(good("resumed "), location or "all locations")])
