"""The audit file: one JSON line per eviction, appended, for those who must be able to answer later."""

import json
import os
import stat
import threading
from collections.abc import Mapping

from cachewarden.logs.clean import clean

# O_NOFOLLOW: in a directory that others can write to, a link in the file's place would have root append
# names that they chose to any file.
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW


class AuditFile:
    """Appends to the file at `path`, which is created with mode 0640. Safe to use from several threads.

    It is opened for each line, so that log rotation needs no word with us: evictions are rare, and
    what is renamed away is left alone.
    """

    def __init__(self, path: bytes) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._lost = 0

    def write(self, record: Mapping[str, object]) -> str | None:
        """Append one line. What went wrong, as text, or None; never raises, because the eviction
        that is to be recorded has happened, and the next one must still go on when the disk is full.

        What could not be written is counted, and before the next line that can, one tells how many
        are missing: `{"time": …, "event": "lost", "records": 3}`.
        """
        with self._lock:
            lines = _line(record)
            if self._lost:
                lines = _line({"time": record.get("time"), "event": "lost", "records": self._lost}) + lines
            trouble = _append(self.path, lines)
            self._lost = 0 if trouble is None else self._lost + 1
            return trouble


def _line(record: Mapping[str, object]) -> bytes:
    return json.dumps(clean(record), ensure_ascii=False).encode() + b"\n"


def _append(path: bytes, lines: bytes) -> str | None:
    try:
        fd = os.open(path, _FLAGS, 0o640)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):  # a pipe would swallow it
                return "the audit file is not a regular file"
            # A line that a full disk cut off is ended first, or both would be unreadable.
            data = lines if _ends_with_newline(fd) else b"\n" + lines
            if os.write(fd, data) != len(data):
                return "the audit file takes no more: only a part of a line was written"
        finally:
            os.close(fd)
    except OSError as error:
        return f"the audit file cannot be written: {error.strerror}"
    return None


def _ends_with_newline(fd: int) -> bool:
    size = os.fstat(fd).st_size
    return size == 0 or os.pread(fd, 1, size - 1) == b"\n"
