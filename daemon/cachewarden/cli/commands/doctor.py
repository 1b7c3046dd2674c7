"""`doctor`: try out what can be guaranteed here."""

import os

import typer

from cachewarden.cli.face import face_of, finish
from cachewarden.cli.guard import DONE, NOT_WELL
from cachewarden.cli.options import Json
from cachewarden.cli.views.examining import examination_blocks
from cachewarden.clock import SystemClock
from cachewarden.doctor import Own, examine
from cachewarden.service.opening import check_privilege
from cachewarden.settings import load, territory

_DOCTOR = """\b
Exit status: 0 all is guaranteed, 1 something is weaker than it could be.

\b
Examples:
  sudo cachewarden doctor
  cachewarden --user doctor
  sudo cachewarden doctor --json | jq -e .guaranteed
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=_DOCTOR, short_help="Try out what can be guaranteed here.")(doctor)


def doctor(ctx: typer.Context, as_json: Json = False) -> None:
    """Try out what can be guaranteed on this machine and in each location's filesystem.

    It takes a lease on a file of its own while it is open, mapped, and open in another mount namespace;
    renames; asks for reports of opens; looks at all processes, at rights and limits, at room and clocks, at
    the state directory and the ledger, and whether other machines would have to be asked. RESULT: good
    (guaranteed), weaker (less than could be), note; each line says what that means, and what to do. Files
    are made only in each filesystem's trash and in the state directory, and are gone at the end. Caches are
    not touched.
    """
    face = face_of(ctx)
    check_privilege(face.files, user=face.user)
    files = None if face.files is None else [os.fsencode(file) for file in face.files]
    settings = load(files, environ=os.environ, user=face.user)
    daemon = settings.daemon
    own = Own(daemon.state_dir, daemon.runtime_dir, daemon.user_mode, daemon.interval)
    found = examine(territory(settings), own, SystemClock())
    if as_json:
        face.screen.json(found.to_json())
    else:
        face.screen.show([*examination_blocks(found)])
    finish(DONE if found.guaranteed else NOT_WELL)
