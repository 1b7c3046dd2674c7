"""The top command: global options, and the commands below it."""

from typing import Annotated

import typer

from cachewarden import __version__
from cachewarden.cli.commands import (
    brakes,
    configuration,
    discover,
    doctor,
    enforcing,
    looking,
    passes,
    pinning,
    service,
    trash,
)
from cachewarden.cli.face import Face
from cachewarden.cli.guard import Guarded

HELP = """Keeps AI caches inside their quotas, and never takes one away from a program that is using it.

Start with `cachewarden config check`, then `cachewarden plan`: it says what would go and why, and
touches nothing. `cachewarden run` is the service, `cachewarden once` a single pass.

\b
As root the commands work on the system's locations, with or without a
running service. With --user they do the same for your own caches. Without
either, status, list, explain, history, pins, pin, unpin and evict ask the
running service, and show and do what is yours.
"""
EPILOG = """\b
Exit status:
   0  done, and everything is within its limits
   1  some location is short, waits for confirmation, is unavailable or
      failed (plan and status: only with --check); doctor: something is weaker
   2  wrong usage or configuration, a ledger of a newer version, no rights
   3  another pass held a location's lock for longer than --wait
  70  a bug in cachewarden; the line that it prints is worth a report

\b
Examples:
  sudo cachewarden plan                  what would go, and why
  sudo cachewarden status                how full the locations are
  cachewarden --user explain ~/.accelerate/offload/mymodel
"""

app = typer.Typer(
    cls=Guarded,
    help=HELP,
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help reads the same on a terminal, in a pipe and in a report
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cachewarden {__version__}")
        raise typer.Exit


@app.callback()
def top(
    ctx: typer.Context,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Read this file instead of the default ones. May be repeated: a later file wins.",
            show_default=False,
        ),
    ] = None,
    user: Annotated[
        bool, typer.Option("--user", help="Your own configuration and caches, without root.")
    ] = False,
    version: Annotated[  # noqa: ARG001 - its callback has done all that there is to do
        bool,
        typer.Option("--version", help="Print the version and leave.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    ctx.obj = Face(config or None, user)


for each in (service, passes, looking, pinning, trash, brakes, enforcing, configuration, discover, doctor):
    each.register(app)
