"""Tends the openers of a running service: their groups outlive a restart, and their troubles are said."""

from collections.abc import Collection

from cachewarden.logs import get_logger
from cachewarden.metrics import Metrics
from cachewarden.notify import Notifier
from cachewarden.openers import Form, Openers


class Listening:
    """Called by the main loop at each turn."""

    def __init__(self, openers: Openers, notifier: Notifier, metrics: Metrics) -> None:
        self._openers = openers
        self._notifier = notifier
        self._metrics = metrics
        self._log = get_logger()
        self._kept: dict[str, int] = {}
        self._settled: frozenset[str] = frozenset()
        self._overflows = 0

    def tend(self, keys: Collection[str]) -> None:
        """Do what is due; `keys` are the locations in force."""
        for notice in self._openers.take_notices():
            self._log.warning(notice)
        for _ in range(self._openers.overflows - self._overflows):
            self._metrics.count_overflow()
        self._overflows = max(self._overflows, self._openers.overflows)
        if self._settled != frozenset(keys) and all(self._openers.form(key) is not Form.NONE for key in keys):
            self._settled = frozenset(keys)
            self._openers.settle(keys)
        self._keep()

    def _keep(self) -> None:
        """Hand the groups to the manager: what is opened while we are away waits in their queues."""
        now = self._openers.descriptors()
        for name in self._kept.keys() - now.keys():
            self._notifier.forget(name)  # or its queue would fill for ever
        for name, fd in now.items():
            if self._kept.get(name) != fd:
                self._notifier.keep(name, fd)
        self._kept = now
