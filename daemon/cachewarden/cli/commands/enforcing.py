"""`enforce`: let locations lose entries that so far were only reported, or only report them again."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer

from cachewarden.cli.complete import location_names
from cachewarden.cli.face import Face, face_of, finish, now_ns
from cachewarden.cli.guard import DONE, NOT_WELL
from cachewarden.cli.options import Json
from cachewarden.cli.views.enforcing import changed_blocks, force_blocks, foreseen_blocks
from cachewarden.cli.words import until
from cachewarden.clock import SystemClock
from cachewarden.errors import UsageError
from cachewarden.ledger import read_service_state
from cachewarden.report import JSON_VERSION, PassReport
from cachewarden.service import House
from cachewarden.service.opening import check_privilege
from cachewarden.service.telling import Reloaded, reload_service
from cachewarden.settings import Switch, rewrite, switch

_ENFORCE = """\b
Examples:
  sudo cachewarden enforce huggingface
  sudo cachewarden enforce --all --yes
  sudo cachewarden enforce --off huggingface       report only, again
  cachewarden --user enforce accelerate
"""


@dataclass(frozen=True, slots=True)
class _Foreseen:
    """What a pass would do then, and what else holds locations back, in sentences."""

    report: PassReport | None = None
    held: Sequence[str] = field(default=())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=_ENFORCE, short_help="Turn a location from report only to enforced, or back.")(enforce)


def enforce(
    ctx: typer.Context,
    locations: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LOCATION]...",
            help="Names of locations in the configuration.",
            autocompletion=location_names,
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All locations, and the key enforce of [daemon] with them.")
    ] = False,
    off: Annotated[bool, typer.Option("--off", help="Only report from now on; nobody is asked.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Turn locations on that only report so far: set enforce = true where the configuration says false.

    Shows what would go now, asks, changes that one key in the file in which it stands (everything else in it
    stays as it is), and tells a running service to read it. The limits act as ever: max_share, guards and
    what is in use stop a pass as they do otherwise.
    """
    face = face_of(ctx)
    names = _names(locations, everything)
    check_privilege(face.files, user=face.user)
    files = None if face.files is None else [os.fsencode(file) for file in face.files]
    found = switch(names, not off, files, environ=os.environ, user=face.user)
    asks = bool(found.changes) and not off and not yes
    if asks and as_json:
        raise UsageError("--json: nobody can be asked, and nothing was changed; give --yes as well")
    foreseen = _foreseen(face, found) if found.changes and not off else _Foreseen()
    if foreseen.report is not None and not as_json:
        face.screen.show([*foreseen_blocks(foreseen.report, foreseen.held, now_ns())])
    if asks and not _agreed(found):
        face.screen.say("nothing was changed")
        finish(NOT_WELL)
    rewrite(found.edits)
    _tell(face, found, foreseen, value=not off, as_json=as_json)


def _names(locations: Sequence[str] | None, everything: bool) -> Sequence[str] | None:
    if everything == bool(locations):
        raise UsageError("name the locations, or say --all" + (", not both" if everything else ""))
    return None if everything else locations


def _foreseen(face: Face, found: Switch) -> _Foreseen:
    with face.house_under(found.settings, "enforce") as house:
        return _Foreseen(house.foresee(found.names), _held(house, found))


def _held(house: House, found: Switch) -> list[str]:
    """What holds locations back whatever the files say: pauses, and what blinds the service."""
    now, told = now_ns(), []
    for spec in house.territory().locations:
        until_ns = house.ledger.paused_until(spec, now) if spec.name in found.names else None
        if until_ns is not None:
            told.append(f"{spec.name} is paused {until(until_ns, now)}; `cachewarden resume` takes that back")
    service = read_service_state(found.settings.daemon.runtime_dir)
    told += [f"the service evicts nothing: {each}" for each in (service.blinded if service else ())]
    return list(dict.fromkeys(told))


def _agreed(found: Switch) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("there is nobody to ask, and nothing was changed; --yes turns it on unasked")
    return typer.confirm(f"Turn on {', '.join(found.names)}?", err=True)


def _tell(face: Face, found: Switch, foreseen: _Foreseen, *, value: bool, as_json: bool) -> None:
    """Let a running service know, and say how it all went."""
    if not as_json:
        face.screen.show([*changed_blocks(found, value)])
    answer = None
    if found.changes:
        answer = reload_service(found.settings.daemon.runtime_dir, SystemClock())
        if not as_json:
            face.screen.show([*force_blocks(found, value, answer)])
    if as_json:
        face.screen.json(_document(found, foreseen, value, answer))
    finish(NOT_WELL if answer is not None and not answer.agrees(found.names, value) else DONE)


def _document(found: Switch, foreseen: _Foreseen, value: bool, answer: Reloaded | None) -> dict[str, object]:
    return {
        "version": JSON_VERSION,
        "enforce": value,
        "locations": list(found.names),
        "changes": [each.to_json() for each in found.changes],
        "plan": foreseen.report.to_json() if foreseen.report is not None else None,
        "held_back": list(foreseen.held),
        "service": answer.to_json(found.names, value) if answer is not None else None,
    }
