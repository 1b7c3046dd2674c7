"""Telling systemd how we are: the datagrams of sd_notify(3), without libsystemd.

Everything here is a courtesy to the manager: without NOTIFY_SOCKET all of it does nothing, and a
manager that does not answer never stops the service.
"""

import os
import socket
import time
from collections.abc import Mapping

_FIRST_INHERITED = 3  # SD_LISTEN_FDS_START: sd_listen_fds(3)


class Notifier:
    """The notification socket of the service manager, if there is one.

    `environ` is read once: NOTIFY_SOCKET (a path, or `@` and an abstract name; sd_notify(3)),
    WATCHDOG_USEC and WATCHDOG_PID (sd_watchdog_enabled(3)). Every method returns whether the
    manager was reached.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._interval_ns = _watchdog_interval_ns(environ)
        self._inherited = _inherited(environ)

    @property
    def active(self) -> bool:
        """Whether a manager wants to hear from us."""
        return self._address is not None

    @property
    def watchdog_interval_ns(self) -> int | None:
        """How often to call `watchdog`: half of the limit, as the man page advises. None: never."""
        return self._interval_ns if self.active else None

    def ready(self, status: str = "") -> bool:
        """Start-up, or the reload that `reloading` announced, is over."""
        return self._send("READY=1", _status(status))

    def reloading(self, status: str = "") -> bool:
        """A reload begins. The stamp is CLOCK_MONOTONIC, which systemd compares with its own (since 253)."""
        stamp = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        return self._send("RELOADING=1", f"MONOTONIC_USEC={stamp}", _status(status))

    def stopping(self, status: str = "") -> bool:
        """The service begins to leave."""
        return self._send("STOPPING=1", _status(status))

    def status(self, text: str) -> bool:
        """One line for `systemctl status`."""
        return self._send(_status(text))

    def watchdog(self) -> bool:
        """A sign of life. Call it from the loop whose turning it is to prove, never from a timer thread."""
        return self._send("WATCHDOG=1")

    def keep(self, name: str, fd: int) -> bool:
        """Put a descriptor into the manager's store under a name, to have it again after a restart.

        sd_pid_notify_with_fds(3): a descriptor in the store replaces none of the same name, so call it
        once for each. FDPOLL=0, because a queue that is not read must not make the manager drop it.
        """
        if self._address is None:
            return False
        message = f"FDSTORE=1\nFDNAME={name}\nFDPOLL=0".encode()
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
                manager.setblocking(False)
                manager.connect(self._address)
                return socket.send_fds(manager, [message], [fd]) == len(message)
        except OSError:
            return False

    def forget(self, name: str) -> bool:
        """Take the descriptors of a name out of the manager's store (systemd 236)."""
        return self._send("FDSTOREREMOVE=1", f"FDNAME={name}")

    def inherited(self) -> dict[str, int]:
        """The descriptors that the manager kept for us, by name: sd_listen_fds_with_names(3)."""
        return dict(self._inherited)

    def _send(self, *lines: str) -> bool:
        if self._address is None:
            return False
        message = "\n".join(line for line in lines if line).encode("utf-8", "backslashreplace")
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
                # Not blocking: a manager whose queue is full must not stop the loop that evicts.
                # The next sign of life comes soon.
                manager.setblocking(False)
                return manager.sendto(message, self._address) == len(message)
        except OSError:
            return False


def _address(text: str) -> str | bytes | None:
    if text.startswith("@") and len(text) > 1:
        return b"\0" + os.fsencode(text[1:])
    return text if text.startswith("/") else None


def _watchdog_interval_ns(environ: Mapping[str, str]) -> int | None:
    pid = environ.get("WATCHDOG_PID", "")
    limit = environ.get("WATCHDOG_USEC", "")
    if pid and pid != str(os.getpid()):  # meant for our parent, and inherited
        return None
    return int(limit) * 1000 // 2 if limit.isdecimal() and int(limit) > 0 else None


def _status(text: str) -> str:
    # A newline would start another assignment: a path must not be able to say STOPPING=1.
    return "STATUS=" + "".join(char if char.isprintable() else " " for char in text) if text else ""


def _inherited(environ: Mapping[str, str]) -> dict[str, int]:
    if environ.get("LISTEN_PID") != str(os.getpid()):  # meant for another process, or nothing was kept
        return {}
    count = environ.get("LISTEN_FDS", "")
    names = environ.get("LISTEN_FDNAMES", "").split(":")
    if not (count.isascii() and count.isdecimal()) or len(names) != int(count):
        return {}
    found = {name: _FIRST_INHERITED + place for place, name in enumerate(names)}
    for fd in found.values():
        os.set_inheritable(fd, False)
    return found
