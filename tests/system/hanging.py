"""A mount that can hang, and answer again."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

SERVER = os.path.join(os.path.dirname(__file__), "fuse_server.py")
DETACH = 2  # MNT_DETACH: a plain umount waits for an answer


@dataclass(frozen=True)
class Mount:
    """The server of a mounted filesystem."""

    server: subprocess.Popen[str]

    def hang(self) -> None:
        """Let nothing be answered from here on."""
        self.server.send_signal(signal.SIGSTOP)

    def answer(self) -> None:
        """Let all be answered again, also what was asked meanwhile."""
        self.server.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def mounted(path: str, *, hanging: bool = False, delay: float = 0) -> Iterator[Mount]:
    """A filesystem with two entries of 1 MiB at a directory.

    `hanging`: it has never answered anything. `delay`: seconds for each answer.
    """
    if not os.path.exists("/dev/fuse"):
        pytest.skip("needs /dev/fuse: its filesystem hangs")
    command = [sys.executable, SERVER, path, "stopped" if hanging else str(delay)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "mounted\n"
            yield Mount(server)
        finally:
            server.kill()
            ctypes.CDLL(None).umount2(os.fsencode(path), DETACH)
