"""`run`: the service itself."""

import os

import typer

from cachewarden.cli.face import face_of, finish


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="""\b
Examples:
  sudo systemctl enable --now cachewarden     the usual way to start it
  sudo cachewarden run                        in the foreground
  cachewarden --user run                      for your own caches
""",
        short_help="Run the service.",
    )(run)


def run(ctx: typer.Context) -> None:
    """Run the service: watch all locations and keep them within their limits.

    It stays in the foreground and logs to standard error. SIGHUP reads the configuration again (a broken
    one is refused, and the old one stays in force); SIGTERM ends it within seconds, and no entry is left
    half evicted.
    """
    # Here, because the servers and schedulers that it brings along cost every other command half a second.
    from cachewarden.service.running import run_service  # noqa: PLC0415

    face = face_of(ctx)
    finish(run_service(face.files, user=face.user, environ=os.environ))
