"""Tends the fanotify groups of a running service: they outlive a restart, and their troubles are said."""

from collections.abc import Collection, Mapping

from cachewarden.logs import get_logger
from cachewarden.metrics import Metrics
from cachewarden.notify import Notifier
from cachewarden.openers import Form, Openers
from cachewarden.watch import STRUCTURE, Watching


def shared_out(inherited: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """The groups that the manager kept for us: those of what changes, and those of opens."""
    structure = {name: fd for name, fd in inherited.items() if name.startswith(STRUCTURE)}
    return structure, {name: fd for name, fd in inherited.items() if name not in structure}


class Listening:
    """Called by the main loop at each turn."""

    def __init__(self, openers: Openers, watching: Watching, notifier: Notifier, metrics: Metrics) -> None:
        self._openers = openers
        self._watching = watching
        self._notifier = notifier
        self._metrics = metrics
        self._log = get_logger()
        self._kept: dict[str, int] = {}
        self._inherited = notifier.inherited()
        self._settled: frozenset[str] = frozenset()
        self._overflows = 0

    def tend(self, keys: Collection[str]) -> None:
        """Do what is due; `keys` are the locations in force."""
        for notice in self._openers.take_notices() + self._watching.feed.take_notices():
            self._log.warning(notice)
        overflows = self._openers.overflows + self._watching.feed.overflows
        for _ in range(overflows - self._overflows):
            self._metrics.count_overflow()
        self._overflows = max(self._overflows, overflows)
        self._keep()
        if self._settled != frozenset(keys) and all(self._openers.form(key) is not Form.NONE for key in keys):
            self._settled = frozenset(keys)
            self._openers.settle(keys)
            self._watching.feed.settle(keys)
            for name in self._inherited.keys() - self._kept.keys():
                self._notifier.forget(name)
            self._inherited.clear()

    def _keep(self) -> None:
        """Hand the groups to the manager: what happens while we are away waits in their queues."""
        now = {**self._openers.descriptors(), **self._watching.feed.descriptors()}
        for name in self._kept.keys() - now.keys():
            self._notifier.forget(name)  # or its queue would fill for ever
        for name, fd in now.items():
            if self._kept.get(name) != fd:
                self._notifier.keep(name, fd)
        self._kept = now
