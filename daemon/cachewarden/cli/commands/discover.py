"""`discover`: find caches, and propose a configuration. It acts on nothing."""

import os
from typing import Annotated

import typer

from cachewarden.cli.face import Face, face_of, now_ns
from cachewarden.cli.files import write_new
from cachewarden.cli.options import Json
from cachewarden.cli.progress import Watcher
from cachewarden.cli.views.discovering import discovery_blocks
from cachewarden.clock import SystemClock
from cachewarden.discover import Discovery, Scope, discover
from cachewarden.settings import Settings, load

_DISCOVER = """\b
Examples:
  cachewarden discover
  sudo cachewarden discover -o proposal.toml
  sudo cachewarden --config proposal.toml plan
  cachewarden discover --json | jq -r '.places[] | select(.proposed) | .path'
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("discover", epilog=_DISCOVER, short_help="Find caches, and propose a configuration.")(
        discover_caches
    )


def discover_caches(
    ctx: typer.Context,
    as_json: Json = False,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the proposed configuration after the table.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the proposed configuration to this new file."
        ),
    ] = None,
    network: Annotated[
        bool, typer.Option("--network", help="Look on network and unknown filesystems, too.")
    ] = False,
) -> None:
    """Find the caches of this machine, measure them, and propose a configuration. Touches nothing.

    Looks where tools keep their caches: by their defaults, by their variables here and in the environments of
    live processes, and for folders called .accelerate in homes and above where processes work. As root, for
    all users; otherwise, or with --user, for yourself. Links that others could change are not followed. WOULD
    FREE is what the disk would get back under preset:workstation, or under the policy that is configured.
    """
    face = face_of(ctx)
    found = _discovered(face, network=network)
    if output is not None:
        write_new(output, found.toml)
    if as_json:
        face.screen.json(found.to_json())
        return
    face.screen.show([*discovery_blocks(found, now_ns(), written=output)])
    if toml:
        face.screen.write(f"\n{found.toml}")


def _discovered(face: Face, *, network: bool) -> Discovery:
    everybody = os.geteuid() == 0 and not face.user
    with Watcher(face.screen) as watcher:
        return discover(
            _settings(face), Scope(everybody, network), os.environb, SystemClock(), watcher, watcher.over
        )


def _settings(face: Face) -> Settings:
    files = None if face.files is None else [os.fsencode(file) for file in face.files]
    # An ordinary user's caches are looked up in his own configuration, also without --user.
    user = face.user or (os.geteuid() != 0 and files is None)
    return load(files, environ=os.environ, user=user)
