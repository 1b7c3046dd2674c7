"""The service manager's side of a service: what it hears, and what it keeps for the next start."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.command import PROGRAM, Warden, environment


class Manager:
    """Plays the service manager: a notification socket and what arrived on it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.heard: list[tuple[float, str]] = []
        self.fds: list[int] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                message, fds, _, _ = socket.recv_fds(self.socket, 4096, 16)
                self.fds += fds
                self.heard += [(time.monotonic(), line) for line in message.decode().split("\n")]
            except OSError:
                return

    def times(self, line: str) -> list[float]:
        """When this line arrived."""
        return [at for at, each in self.heard if each == line]

    def close(self) -> None:
        """Stop listening."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@contextmanager
def restarted(
    warden: Warden, base: str, fds: list[int], names: list[str]
) -> Iterator[subprocess.Popen[bytes]]:
    """The service, given descriptors back as a manager does: from 3 on, with their names."""
    start = (
        "import fcntl, os, sys\n"
        "fds, names, command = eval(sys.argv[1]), eval(sys.argv[2]), sys.argv[3:]\n"
        "held = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in fds]\n"
        "for place, fd in enumerate(held): os.dup2(fd, 3 + place)\n"
        "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)))\n"
        "os.environ.update(LISTEN_FDNAMES=':'.join(names))\n"
        "os.execv(command[0], command)\n"
    )
    command = [PROGRAM, "--config", warden.file, "run"]
    with open(os.path.join(base, "log2"), "wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-c", start, repr(fds), repr(names), *command],
            env=environment(),
            pass_fds=fds,
            stdout=log,
            stderr=log,
        )
    try:
        yield child
    finally:
        child.terminate()
        child.wait(15)


@contextmanager
def managed(warden: Warden, base: str) -> Iterator[tuple[Manager, subprocess.Popen[bytes]]]:
    """The service with a manager that wants a sign of life within two seconds."""
    warden.write()
    manager = Manager(os.path.join(base, "n.sock"))
    more = {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "2000000"}
    with open(os.path.join(base, "log"), "wb") as log:
        child = subprocess.Popen(
            [PROGRAM, "--config", warden.file, "run"], env=environment() | more, stdout=log, stderr=log
        )
    try:
        yield manager, child
    finally:
        child.kill()
        child.wait()
        manager.close()
