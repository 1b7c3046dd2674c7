"""`trash list`, `trash restore`, `trash empty`."""

from collections.abc import Sequence

import typer

from cachewarden.cli.blocks import Block, line
from cachewarden.cli.face import face_of, finish
from cachewarden.cli.guard import DONE, NOT_WELL
from cachewarden.cli.options import LocationArgument
from cachewarden.cli.views.records import trash_blocks
from cachewarden.cli.words import plural, size
from cachewarden.evict import Fate, Recovered
from cachewarden.spec import LocationSpec

_LIST = """\b
Examples:
  sudo cachewarden trash list
"""
_RESTORE = """\b
Examples:
  sudo cachewarden trash restore            whatever can be put back
  sudo cachewarden trash restore models     of one location
"""
_EMPTY = """\b
Examples:
  sudo cachewarden trash empty
"""


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("list", epilog=_LIST, short_help="List what lies in the trash.")(list_trash)
    group.command(epilog=_RESTORE, short_help="Put back what is whole.")(restore)
    group.command(epilog=_EMPTY, short_help="Remove what nobody uses.")(empty)
    app.add_typer(
        group,
        name="trash",
        help="Look after what is between its place and its end: list, restore, empty.",
        short_help="Look after what a crash left.",
    )


def list_trash(ctx: typer.Context) -> None:
    """List what lies in the trash of all locations.

    An eviction moves an entry there, checks again that nobody uses it, and then removes it, all within
    seconds. Something stays only when a process was killed in between, or when the entry's place was
    taken meanwhile while somebody still used the old one. STATE: moved (on its way, comes back), purged
    (on its way out), stray (has something in it that nobody knows).
    """
    face = face_of(ctx)
    with face.house("trash list") as house:
        rows = house.trash_list()
    face.screen.show([*trash_blocks(rows)])


def restore(ctx: typer.Context, location: LocationArgument = None) -> None:
    """Put back what is whole and whose place is free."""
    face = face_of(ctx)
    with face.house("trash restore") as house:
        done = house.trash_restore(location)
    face.screen.show(_told(done))
    finish(NOT_WELL if any(each.fate is Fate.FAILED for _, each in done) else DONE)


def empty(ctx: typer.Context, location: LocationArgument = None) -> None:
    """Remove for good what lies in the trash and is not in use."""
    face = face_of(ctx)
    with face.house("trash empty") as house:
        done = house.trash_empty(location)
    face.screen.show(_told(done))
    finish(NOT_WELL if any(each.fate is Fate.FAILED for _, each in done) else DONE)


def _told(done: Sequence[tuple[LocationSpec, Recovered]]) -> list[Block]:
    if not done:
        return [line("The trash is empty.")]
    freed = sum(each.freed_bytes for _, each in done)
    last = f"{plural(len(done), 'thing', 'things')}, {size(freed)} freed"
    return [*(line(f"{spec.name}: {each.sentence}") for spec, each in done), line(last)]
