"""Where lines end up. A log that cannot be written never stops the work that it tells of."""

import contextlib
import os
from collections.abc import Mapping
from typing import TextIO

# sd-daemon(3): a line that begins with <N> has the priority N for the journal.
PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}


class Sink:
    """Writes whole lines to a stream's descriptor, past the stream's buffer.

    The buffer would keep what a full disk or a closed pipe refused, try it again with each later
    line, and turn the exit status into 120 at the end. `dropped` counts the lines that were lost.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.dropped = 0
        try:
            self._fd: int | None = stream.fileno()
        except (OSError, ValueError, AttributeError):
            self._fd = None

    def write(self, line: str) -> None:
        """Write the line and its newline in one go, so that other writers do not get between."""
        try:
            if self._fd is None or self._stream.closed:  # a closed one's number may be another file's now
                self._stream.write(line + "\n")
                return
            with contextlib.suppress(OSError, ValueError):
                self._stream.flush()  # what others printed there comes first
            data = (line + "\n").encode("utf-8", "backslashreplace")
            while data:
                data = data[os.write(self._fd, data) :]
        except (OSError, ValueError):  # ENOSPC, EPIPE, EAGAIN; ValueError: closed
            self.dropped += 1


def is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether the stream leads to the journal.

    JOURNAL_STREAM is `DEVICE:INODE` (systemd.exec(5)); it is inherited by everything that the
    service starts, so that it must be compared with what the stream really is.
    """
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
