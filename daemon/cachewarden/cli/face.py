"""What every command has at hand: the global options, the screen, and the way to the house."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import typer

from cachewarden.cli.guard import DONE, NOT_WELL
from cachewarden.cli.progress import Watcher
from cachewarden.cli.remote import Remote
from cachewarden.cli.screen import Screen
from cachewarden.client import connect
from cachewarden.clock import SystemClock
from cachewarden.service import House, needs_service, open_house, runtime_dir
from cachewarden.settings import Settings
from cachewarden_policies.reasons import Outcome


@dataclass(frozen=True, slots=True)
class Face:
    """`files`: those of --config, None for the default ones."""

    files: Sequence[str] | None = None
    user: bool = False
    screen: Screen = field(default_factory=Screen)

    @contextmanager
    def house(self, command: str, *, live: bool = False) -> Iterator[House]:
        """The house, for as long as the block lasts. `live`: a person sees evictions as they happen."""
        with (
            Watcher(self.screen, live=live) as watcher,
            open_house(
                self.files,
                user=self.user,
                environ=os.environ,
                command=f"cachewarden {command}",
                journal=watcher,
            ) as house,
        ):
            yield house

    @contextmanager
    def house_under(self, settings: Settings, command: str) -> Iterator[House]:
        """The house as it would be under another configuration."""
        with (
            Watcher(self.screen) as watcher,
            House(settings, f"cachewarden {command}", watcher, SystemClock()) as house,
        ):
            yield house

    @contextmanager
    def either(self, command: str, *, live: bool = False) -> Iterator[House | Remote]:
        """The house, or for a user without root the running service. Raises NoServiceError without one."""
        if needs_service(self.files, user=self.user):
            yield Remote(connect(runtime_dir(os.environ)), SystemClock())
            return
        with self.house(command, live=live) as house:
            yield house


def face_of(ctx: typer.Context) -> Face:
    """The face that the top command made."""
    found = ctx.obj
    assert isinstance(found, Face)
    return found


def now_ns() -> int:
    """The time against which people are told "3 min ago"; no decision ever reads it."""
    return time.time_ns()


def status_of(outcome: Outcome) -> int:
    """The exit status of an outcome."""
    return DONE if outcome in (Outcome.WITHIN_LIMITS, Outcome.TRIMMED) else NOT_WELL


def finish(status: int) -> None:
    """End the command with this status."""
    if status != DONE:
        raise typer.Exit(status)
