"""A listening unix socket at a path: made anew over what a killed process left, removed when it ends."""

import os
import socket
import stat
from contextlib import suppress

from cachewarden.errors import ListenError
from cachewarden.paths import show

_BACKLOG = 64


class UnixSocket:
    """Listens in `directory` under `name`. `everybody`: all users may connect, and reach it there."""

    def __init__(self, directory: bytes, name: bytes, *, everybody: bool) -> None:
        self.path = os.path.join(directory, name)
        self._directory = directory
        self._name = name
        self._everybody = everybody
        self._made: tuple[int, int] | None = None

    def listen(self) -> socket.socket:
        """The listening socket. Raises ListenError, also where another process answers there."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._bind(listening)
        except OSError as error:
            listening.close()
            raise ListenError(f"cannot listen on {show(self.path)}: {error.strerror or error}") from error
        except ListenError:
            listening.close()
            raise
        listening.setblocking(False)
        return listening

    def remove(self) -> None:
        """Take the name away, unless somebody has put another one there. Never raises."""
        with suppress(OSError):
            found = os.lstat(self.path)
            if (found.st_dev, found.st_ino) == self._made:
                os.unlink(self.path)
        self._made = None

    def _bind(self, listening: socket.socket) -> None:
        os.makedirs(self._directory, exist_ok=True)
        fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            mode = os.fstat(fd).st_mode
            if self._everybody and not mode & 0o022:  # whoever may write there could replace the socket
                os.fchmod(fd, stat.S_IMODE(mode) | 0o555)
            self._clear(fd)
            # By the descriptor, because a socket's path may be 107 bytes long only: unix(7).
            listening.bind(f"/proc/self/fd/{fd}/{os.fsdecode(self._name)}")
            # Before it listens: until then nobody can connect.
            os.chmod(self._name, 0o666 if self._everybody else 0o600, dir_fd=fd)
            found = os.stat(self._name, dir_fd=fd, follow_symlinks=False)
            self._made = found.st_dev, found.st_ino
            listening.listen(_BACKLOG)
        finally:
            os.close(fd)

    def _clear(self, fd: int) -> None:
        try:
            found = os.stat(self._name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(found.st_mode):
            raise ListenError(f"cannot listen on {show(self.path)}: something that is no socket is there")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(1)
            try:
                asking.connect(f"/proc/self/fd/{fd}/{os.fsdecode(self._name)}")
            except ConnectionRefusedError:
                os.unlink(self._name, dir_fd=fd)
                return
            except FileNotFoundError:
                return
        raise ListenError(f"cannot listen on {show(self.path)}: another service answers there")
