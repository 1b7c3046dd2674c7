"""The thread that reads: asleep while nothing is opened, and in batches while something is."""

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress

# So long at most between two batches while something is opened. The kernel merges what is alike meanwhile,
# and what is left is one event for each directory and process.
BATCH_SECONDS = 0.1
# The first events after a rest are read at once, and the next ones so soon, then after twice the time: a
# program that runs for a moment is met while it lives and can be asked its name.
_SOON_SECONDS = 0.003
# At least this often the books are tended: dead processes forgotten.
IDLE_SECONDS = 60.0
# At most this often they are saved.
SAVE_SECONDS = 1.0


class Reader:
    """Calls `drain` when there is something to read, then `save`, and `sweep` once a minute.

    All from this thread alone.
    """

    def __init__(
        self, drain: Callable[[], None], save: Callable[[], None], sweep: Callable[[], None]
    ) -> None:
        self._drain = drain
        self._save = save
        self._sweep = sweep
        self._poll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll.register(self._wake, select.EPOLLIN)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="openers", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; afterwards nothing is called any more."""
        self._stop.set()
        os.eventfd_write(self._wake, 1)
        if self._thread.is_alive():
            self._thread.join()
        self._poll.close()
        os.close(self._wake)

    def add(self, fd: int) -> None:
        """Read this group too; also while the thread runs (epoll(7) allows that)."""
        self._poll.register(fd, select.EPOLLIN)

    def remove(self, fd: int) -> None:
        """Read it no more; before it is closed."""
        with suppress(OSError):
            self._poll.unregister(fd)

    def _run(self) -> None:
        saved = swept = rested = time.monotonic()
        wait, rest = IDLE_SECONDS, _SOON_SECONDS
        while not self._stop.is_set():
            if self._poll.poll(wait):
                if time.monotonic() - rested >= BATCH_SECONDS:
                    rest = _SOON_SECONDS
                self._drain()
                if self._stop.wait(rest):
                    return
                rested = time.monotonic()
                rest = min(2 * rest, BATCH_SECONDS)
            now = time.monotonic()
            if now - swept >= IDLE_SECONDS:
                self._sweep()
                swept = now
            wait = SAVE_SECONDS - (now - saved)
            if wait <= 0:
                self._save()
                saved = now
                wait = IDLE_SECONDS
