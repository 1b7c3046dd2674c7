"""`config check`, `config show`, `config schema`: they read files and scan nothing."""

import os
from collections.abc import Iterator, Sequence

import typer

from cachewarden.cli.blocks import Block, good, line, warn
from cachewarden.cli.face import Face, face_of
from cachewarden.cli.words import plural
from cachewarden.paths import show
from cachewarden.service.lookout import Lookout
from cachewarden.settings import Settings, load, schema
from cachewarden.settings import show as as_toml
from cachewarden.spec import Territory

_CHECK = """\b
Examples:
  sudo cachewarden config check
  cachewarden --config new.toml config check && echo fine
"""
_SHOW = """\b
Examples:
  cachewarden config show
  cachewarden config show | grep -n max_size
"""
_SCHEMA = """\b
Examples:
  cachewarden config schema > cachewarden.schema.json
"""


_WAIT_SECONDS = 3.0


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command(epilog=_CHECK, short_help="Check the configuration.")(check)
    group.command("show", epilog=_SHOW, short_help="Show what is in force, and who set it.")(
        show_configuration
    )
    group.command("schema", epilog=_SCHEMA, short_help="Print a JSON Schema, for editors.")(show_schema)
    app.add_typer(group, name="config", help="Look at the configuration: check, show, schema.")


def check(ctx: typer.Context) -> None:
    """Check the configuration, and say which locations it means right now.

    Every error has file, line, key and value, and the status is then 2. A path that is missing is no error:
    it is taken up when it appears.
    """
    face = face_of(ctx)
    settings = _load(face)
    # The service is started only after this: a mount that does not answer must not hold back the others.
    lookout = Lookout(settings)
    land = lookout.look(_WAIT_SECONDS)
    face.screen.show([*_checked(settings, land, lookout.hung)])


def show_configuration(ctx: typer.Context) -> None:
    """Show the configuration in force as TOML, with the place where each value was set."""
    face = face_of(ctx)
    face.screen.write(as_toml(_load(face)))


def show_schema(ctx: typer.Context) -> None:
    """Print a JSON Schema of the configuration, for editors."""
    face_of(ctx).screen.json(schema())


def _load(face: Face) -> Settings:
    files = None if face.files is None else [os.fsencode(file) for file in face.files]
    return load(files, environ=os.environ, user=face.user)


def _checked(settings: Settings, land: Territory, hung: Sequence[str]) -> Iterator[Block]:
    there, missing, refused = len(land.locations), len(land.missing), len(land.refused)
    counts = [f"{there} there"]
    counts += [f"{missing} missing"] if missing else []
    counts += [f"{refused} refused"] if refused else []
    places = plural(there + missing + refused, "place", "places")
    pools = f", {plural(len(settings.pools), 'pool', 'pools')}" if settings.pools else ""
    yield line(
        good("OK"),
        f": {plural(len(settings.locations), 'location', 'locations')} configured, {places} now "
        f"({', '.join(counts)}){pools}",
    )
    for source in settings.sources:
        yield line(f"read {source}", indent=1)
    for warning in settings.warnings:
        yield line(warn("Warning: "), warning)
    for name in hung:
        yield line(warn("Warning: "), f"{name}: its filesystem does not answer")
    for spec in land.missing:
        yield line(f"{spec.name}: {show(spec.path)} is not there yet")
    for each in land.refused:
        yield line(warn("Refused: "), f"{each.name}: {show(each.path)}: {each.reason}")
