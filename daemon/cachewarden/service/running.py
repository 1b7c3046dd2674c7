"""The entry of `cachewarden run`."""

import os
from collections.abc import Mapping, Sequence

from cachewarden.service.opening import check_privilege
from cachewarden.service.service import Service
from cachewarden.settings import Settings, load


def run_service(files: Sequence[str] | None, *, user: bool, environ: Mapping[str, str]) -> int:
    """Run the service until it is told to leave; its exit status.

    Raises ConfigurationError, LedgerTooNewError, NoServiceError, ListenError: before it is ready.
    """
    check_privilege(files, user=user)
    named = None if files is None else [os.fsencode(file) for file in files]

    def read() -> Settings:
        return load(named, environ=environ, user=user)

    return Service(read, environ).run()
