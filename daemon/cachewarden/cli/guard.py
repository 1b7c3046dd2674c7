"""The one table from errors to exit statuses."""

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from cachewarden.errors import CachewardenError
from cachewarden.paths import show

DONE = 0
NOT_WELL = 1
USAGE = 2
LOCKED = 3
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
PIPE_CLOSED = 141  # 128 + SIGPIPE: as a program ends that does not catch it


class Guarded(TyperGroup):
    """The top command: whatever is raised on purpose below it ends as a line and a status."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Bugs pass through, and so do typer's own usage errors."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe or a full disk can still be told
            return result
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except (CachewardenError, OSError) as error:
            raise typer.Exit(told(error)) from None


def told(error: CachewardenError | OSError) -> int:
    """Say what happened, and return the exit status for it."""
    if isinstance(error, BrokenPipeError):
        _mute()
        return PIPE_CLOSED
    for text in str(error).splitlines() if isinstance(error, CachewardenError) else [_sentence(error)]:
        sys.stderr.write(f"cachewarden: {text}\n")
    try:
        sys.stdout.flush()
    except OSError:
        _mute()
    return error.exit_status if isinstance(error, CachewardenError) else NOT_WELL


def _sentence(error: OSError) -> str:
    where = error.filename
    if where is None or isinstance(where, int):
        return str(error)
    return f"{show(os.fsencode(where))}: {error.strerror}"


def _mute() -> None:
    """Send the rest of standard output nowhere: at its end Python flushes once more, and would complain."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
