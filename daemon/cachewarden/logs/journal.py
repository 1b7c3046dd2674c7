"""The journal's own protocol, so that `journalctl CACHEWARDEN_LOCATION=hub` finds what concerns one location.

A datagram of fields to a socket: https://systemd.io/JOURNAL_NATIVE_PROTOCOL.
"""

import socket
from collections.abc import Mapping

from cachewarden.logs.sink import PRIORITIES, Sink

SOCKET = "/run/systemd/journal/socket"
_PREFIX = "CACHEWARDEN_"


class Journal:
    """Writes events with their fields; what the socket does not take goes to the stream, as a line."""

    def __init__(self, fallback: Sink, path: str = SOCKET) -> None:
        self._fallback = fallback
        self._path = path

    def write(self, text: str, event: Mapping[str, str]) -> None:
        """`text` is for people, `event` has the fields by name; `level` becomes the priority."""
        priority = PRIORITIES.get(event.get("level", ""), 6)
        fields = {"MESSAGE": text, "PRIORITY": str(priority), "SYSLOG_IDENTIFIER": "cachewarden"}
        fields |= {_PREFIX + _name(key): value for key, value in event.items() if key != "level"}
        data = b"".join(_field(name, value) for name, value in fields.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as journal:
                journal.setblocking(False)  # one that hangs must not stop a pass
                journal.sendto(data, self._path)
        except OSError:  # EAGAIN: it is behind; EMSGSIZE: a long traceback; ENOENT: it restarts
            self._fallback.write(f"<{priority}>{text}")


def _name(key: str) -> str:
    """Field names have capitals, digits and underscores only (systemd.journal-fields(7))."""
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in key).upper()


def _field(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "backslashreplace")
    if b"\n" not in data:
        return name.encode() + b"=" + data + b"\n"
    return name.encode() + b"\n" + len(data).to_bytes(8, "little") + data + b"\n"
