"""`pin`, `unpin`, `pins`."""

from typing import Annotated

import typer

from cachewarden.cli.blocks import good, line
from cachewarden.cli.face import face_of, now_ns
from cachewarden.cli.options import Path, duration, entry_path
from cachewarden.cli.views.records import pins_blocks
from cachewarden.cli.words import until
from cachewarden.errors import UsageError
from cachewarden.paths import show

_PIN = """\b
Examples:
  sudo cachewarden pin /srv/hub/models--acme--chat --for 30d --reason paper
  cachewarden --user pin ~/.accelerate/offload/llama
"""
_UNPIN = """\b
Examples:
  sudo cachewarden unpin /srv/hub/models--acme--chat
"""


_PINS = """\b
Examples:
  sudo cachewarden pins
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog=_PIN, short_help="Keep an entry, whatever the limits say.")(pin)
    app.command(epilog=_UNPIN, short_help="Take a pin back.")(unpin)
    app.command(epilog=_PINS, short_help="Show the pins in force.")(pins)


def pin(
    ctx: typer.Context,
    path: Path,
    lasting: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="For so long (7d). Left out: until it is taken back."),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for others to read.")] = "",
) -> None:
    """Keep an entry, whatever the limits say.

    A pin holds what it names, all below it, and the entry that contains it. It is remembered even when
    the ledger is lost. Without root you pin what you can read, for as long and as much as the policy grants;
    root can pin what does not exist yet, too.
    """
    face = face_of(ctx)
    now = now_ns()
    until_ns = None if lasting is None else now + duration("--for", lasting)
    wanted = entry_path(path)
    with face.either("pin") as house:
        made = house.pin(wanted, until_ns=until_ns, reason=reason)
    face.screen.show([line(good("pinned "), f"{show(made.path)} {until(made.until_ns, now)}")])


def unpin(ctx: typer.Context, path: Path) -> None:
    """Take a pin back. PATH is the path that was pinned, as `cachewarden pins` shows it."""
    face = face_of(ctx)
    wanted = entry_path(path)
    with face.either("unpin") as house:
        if not house.unpin(wanted):
            raise UsageError(f"{show(wanted)}: no pin is set on this path; `cachewarden pins` shows them all")
    face.screen.show([line(good("unpinned "), show(wanted))])


def pins(ctx: typer.Context) -> None:
    """Show the pins in force: until when, by whom and why."""
    face = face_of(ctx)
    with face.either("pins") as house:
        found = house.pin_list()
    face.screen.show([*pins_blocks(found, now_ns())])
