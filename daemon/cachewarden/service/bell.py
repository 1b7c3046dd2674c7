"""Wakes the main loop: from any thread, and from a signal handler that interrupts the loop anywhere."""

import queue
from contextlib import suppress


class Bell:
    """What rings before somebody waits is not lost, and however often it rings, that is one waking.

    No `threading.Event`: its methods hold a lock, for which a handler would wait without an end, as it runs
    in the thread that it interrupts. `SimpleQueue.put` may interrupt itself (documentation of `queue`).
    """

    def __init__(self) -> None:
        self._rung: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ring(self) -> None:
        """Wake who waits, or who will wait next."""
        self._rung.put(None)

    def wait(self, seconds: float) -> None:
        """Return when it rings, when it rang since the last time, or after `seconds`."""
        with suppress(queue.Empty):
            self._rung.get(timeout=max(0.0, seconds))
            while True:
                self._rung.get_nowait()
