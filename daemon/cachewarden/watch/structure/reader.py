"""The thread that reads one filesystem's changes: asleep while nothing changes, and in batches otherwise."""

import os
import select
import threading
from collections.abc import Callable

# So long after the first event the batch is read: the kernel merges what is alike meanwhile.
BATCH_SECONDS = 0.1


class Reader:
    """Calls `drain` when there is something to read at `fd`, until that says False or `end` is called; and
    `ended` at last. All from its thread.

    One for each filesystem: looking up a directory on one that does not answer hangs, and silences no other.
    """

    def __init__(self, fd: int, drain: Callable[[], bool], ended: Callable[[], None]) -> None:
        self._fd = fd
        self._drain = drain
        self._ended = ended
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()  # around the use and the end of `_wake`
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="structure", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Read no more, as soon as what is under way is done; does not wait for that."""
        with self._lock:
            if not self._stop.is_set():
                self._stop.set()
                os.eventfd_write(self._wake, 1)

    def join(self, seconds: float) -> bool:
        """Wait for the end; whether it came."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        going = True
        while going:
            poll.poll()
            going = not self._stop.wait(BATCH_SECONDS) and self._drain()
        with self._lock:
            self._stop.set()
            os.close(self._wake)
        self._ended()
