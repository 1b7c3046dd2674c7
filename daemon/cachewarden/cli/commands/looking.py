"""`status`, `list`, `explain`, `history`: what is there and what was. They change nothing."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from cachewarden.cli.face import face_of, finish, now_ns, status_of
from cachewarden.cli.guard import DONE
from cachewarden.cli.options import Json, LocationArgument, Path, entry_path
from cachewarden.cli.remote import Remote
from cachewarden.cli.views.entries import list_blocks
from cachewarden.cli.views.explaining import explain_blocks, gone_blocks
from cachewarden.cli.views.mine import mine_blocks, mine_json
from cachewarden.cli.views.records import history_blocks
from cachewarden.cli.views.status import status_blocks
from cachewarden.enforce.view import history_json, listing
from cachewarden.errors import ServiceRefusedError, UsageError
from cachewarden.ledger import EvictionRow
from cachewarden.owners import user_name
from cachewarden.service import House

_ALL = 10**6
_SHOWN = 1000
_STATUS = """\b
Examples:
  sudo cachewarden status
  cachewarden status --mine
  sudo cachewarden status --check || mail -s "caches over limit" root
"""
_LIST = """\b
Examples:
  sudo cachewarden list
  sudo cachewarden list models
  sudo cachewarden list --json | jq -r '.[] | select(.stale) | .entry'
"""
_EXPLAIN = """\b
Examples:
  cachewarden --user explain ~/.accelerate/offload/llama
  sudo cachewarden explain /srv/hub/models--acme--chat
"""
_HISTORY = """\b
Examples:
  sudo cachewarden history
  sudo cachewarden history --json | jq 'map(.freed_bytes) | add'
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog=_STATUS, short_help="Show how full the locations are.")(status)
    app.command("list", epilog=_LIST, short_help="List all entries with their verdicts.")(list_entries)
    app.command(epilog=_EXPLAIN, short_help="Tell all about one entry.")(explain)
    app.command(epilog=_HISTORY, short_help="Show what was evicted, when and why.")(history)


def status(
    ctx: typer.Context,
    as_json: Json = False,
    mine: Annotated[bool, typer.Option("--mine", help="Only locations with entries of yours.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="End with status 1 unless every location is within its limits.")
    ] = False,
) -> None:
    """Show how full each location is, how its last pass ended, and whether the service runs.

    Figures are those of the last pass; a location that no pass has looked at yet is measured now.
    """
    face = face_of(ctx)
    with face.either("status") as house:
        found = house.status()
        yours = _mine(house) if mine else {}
    if mine and as_json:
        face.screen.json(mine_json(found, yours))
    elif mine:
        face.screen.show([*mine_blocks(found, yours)])
    elif as_json:
        face.screen.json(found.to_json())
    else:
        face.screen.show([*status_blocks(found, now_ns())])
    finish(status_of(found.outcome) if check else DONE)


def list_entries(ctx: typer.Context, location: LocationArgument = None, as_json: Json = False) -> None:
    """List all entries with size, last use and verdict; what goes first is on top.

    GAIN is what a location loses when the entry goes alone; it is less than SIZE where entries share data.
    KNOWN BY says where the last use comes from: opens, atime, relatime (to the day), stamps (file times),
    first_seen.
    """
    face = face_of(ctx)
    with face.either("list") as house:
        rows = house.rows(location)
    if as_json:
        face.screen.json(listing(rows))
    else:
        face.screen.show([*list_blocks(rows, now_ns())])


def explain(ctx: typer.Context, path: Path, as_json: Json = False) -> None:
    """Tell all about one entry: what it is, who uses it, when it was used last, whether it goes and why.

    Also for one that was evicted already: then it tells when and why.
    """
    face = face_of(ctx)
    wanted = entry_path(path)
    with face.either("explain") as house:
        past = _past(house, wanted)
        try:
            found = house.explain(wanted)
        except (UsageError, ServiceRefusedError):
            if as_json or not past:
                raise
            face.screen.show([*gone_blocks(wanted, past, now_ns())])
            return
    if as_json:
        face.screen.json(found.to_json() | {"user": user_name(found.row.owner)})
        return
    mine = [row for row in past if row.entry == found.row.entry]
    face.screen.show([*explain_blocks(found, mine, now_ns())])


def history(
    ctx: typer.Context,
    as_json: Json = False,
) -> None:
    """Show what was evicted, when and why, newest first.

    Without root: what went of yours, and from locations whose directory is yours.
    """
    face = face_of(ctx)
    with face.either("history") as house:
        rows = house.history(limit=_ALL if as_json else _SHOWN + 1)
    if as_json:
        face.screen.json(history_json(rows))
    else:
        face.screen.show([*history_blocks(rows, _SHOWN)])


def _mine(house: House | Remote) -> Mapping[str, int]:
    """Bytes of the caller's own entries, by the key of the location."""
    if isinstance(house, Remote):
        return house.mine()
    found: Counter[str] = Counter()
    for row in house.rows():
        if row.owner == os.getuid():
            found[row.spec.key] += row.size
    return found


def _past(house: House | Remote, path: bytes) -> Sequence[EvictionRow]:
    """Evictions of what was at `path` or had it inside, or that had it as a part (`PATH@NAME`)."""
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return [row for row in house.history(limit=_ALL) if _had(row, path) or _had(row, real)]


def _had(row: EvictionRow, path: bytes) -> bool:
    entry = os.path.join(row.path, row.entry)
    return path == entry or path.startswith(entry + b"/") or entry.startswith(path + b"@")
