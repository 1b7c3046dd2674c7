"""Opening the house for a command."""

import os
from collections.abc import Mapping, Sequence

from cachewarden.clock import Clock, SystemClock
from cachewarden.enforce.journal import Journal
from cachewarden.errors import CachewardenError, ConfigurationError, NoServiceError
from cachewarden.ledger import read_service_state
from cachewarden.logs import AuditFile
from cachewarden.service.auditing import Audited, Auditor
from cachewarden.service.house import House
from cachewarden.settings import load

_RUNTIME_DIR = b"/run/cachewarden"  # the default


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
    try:
        settings = load(named, environ=environ, user=user)
    except ConfigurationError as error:
        if files is None and not user and read_service_state(_RUNTIME_DIR) is not None:
            runs_on = "the service runs on under the configuration that it read before"
            raise ConfigurationError([*error.problems, runs_on]) from error
        raise
    journal, clock, file = journal or Journal(), clock or SystemClock(), settings.daemon.audit_file
    if file is not None:
        journal = Audited(journal, Auditor(clock, command, AuditFile(file)))
    return House(settings, command, journal, clock)


def check_privilege(files: Sequence[str] | None, *, user: bool) -> None:
    """Raises NoServiceError for an ordinary user who asks for the system's locations.

    With a configuration of his own (`--config`) he may do whatever his rights allow.
    """
    if needs_service(files, user=user):
        raise NoServiceError(
            "this needs root; without it the service answers status, list, explain, history, pins, pin, "
            "unpin and evict. For caches of your own: cachewarden --user"
        )


def needs_service(files: Sequence[str] | None, *, user: bool) -> bool:
    """Whether this process may not touch the system's locations itself, and no others were named."""
    return os.geteuid() != 0 and not user and files is None


def runtime_dir(environ: Mapping[str, str]) -> bytes:
    """Where the system's service has its socket, also where its configuration may not be read."""
    try:
        return load(None, environ=environ, user=False).daemon.runtime_dir
    except (CachewardenError, OSError):
        return _RUNTIME_DIR
