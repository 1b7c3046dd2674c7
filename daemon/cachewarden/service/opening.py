"""Opening the house for a command."""

import os
from collections.abc import Mapping, Sequence

from cachewarden.clock import Clock, SystemClock
from cachewarden.enforce.journal import Journal
from cachewarden.errors import NoServiceError
from cachewarden.service.house import House
from cachewarden.settings import load


def open_house(
    files: Sequence[str] | None,
    *,
    user: bool,
    environ: Mapping[str, str],
    command: str,
    journal: Journal | None = None,
    clock: Clock | None = None,
) -> House:
    """Read the configuration and open ledger and pins.

    `files` replace the default configuration files; `command` names us to whoever waits for a lock.
    Raises ConfigurationError, LedgerTooNewError, and NoServiceError for an ordinary user who asks
    for the system's locations.
    """
    check_privilege(files, user=user)
    named = None if files is None else [os.fsencode(file) for file in files]
    settings = load(named, environ=environ, user=user)
    return House(settings, command, journal or Journal(), clock or SystemClock())


def check_privilege(files: Sequence[str] | None, *, user: bool) -> None:
    """Raises NoServiceError for an ordinary user who asks for the system's locations.

    With a configuration of his own (`--config`) he may do whatever his rights allow.
    """
    if os.geteuid() != 0 and not user and files is None:
        raise NoServiceError(
            "this needs root: ordinary users cannot ask the service in this version. "
            "For caches of your own: cachewarden --user"
        )
