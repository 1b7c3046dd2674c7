"""A command at work beside the running service: what that one knows of opens, it knows as well."""

from collections.abc import Callable

from cachewarden.client import connect
from cachewarden.errors import NoServiceError, ServiceRefusedError
from cachewarden.ledger import read_service_state

_SECONDS = 10.0  # the service looks at no disk for it


class Beside:
    """Has the ledger's live openers brought up to date by the service before they are read.

    The service writes what it sees once a second, and a command sees opens from the moment on in which it
    marks a filesystem. Whoever loaded a model and closed its files in the second before that is known to the
    service alone; without asking it, a command would evict under a program that is just starting.
    """

    def __init__(self, runtime_dir: bytes, notice: Callable[[str], None]) -> None:
        """`notice` is told, once, when the service runs and does not answer."""
        self._runtime_dir = runtime_dir
        self._notice = notice
        service = read_service_state(runtime_dir)
        self._knows = service is not None
        self._watched = frozenset(service.watch_modes) if service is not None else frozenset()

    def knows(self, key: str) -> bool:
        """Whether a service saw all opens in this location before ours, and told them.

        One that has other locations than we, by another configuration, saw nothing of it.
        """
        return self._knows and key in self._watched

    def ask(self) -> None:
        """Have the service, where one runs, bring to the ledger what it knows at this moment."""
        if not self._knows:
            return
        try:
            connect(self._runtime_dir).ask("POST", "/flush", body={}, seconds=_SECONDS)
        except (NoServiceError, ServiceRefusedError) as error:
            self._knows = False
            self._notice(
                "a service runs, and did not tell who opened what a moment ago "
                f"({error}): what no process holds open now may still be in use"
            )
