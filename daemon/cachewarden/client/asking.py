"""Asking the service over its unix socket: one HTTP request for each question, JSON both ways."""

import http.client
import json
import os
import socket
from collections.abc import Mapping
from urllib.parse import urlencode

from cachewarden.errors import NoServiceError, ServiceRefusedError
from cachewarden.paths import show

CONTROL_NAME = b"control.sock"  # in the runtime directory
_BASE = "/api/v1"
_SECONDS = 3700.0  # longer than the service takes for anything
_CONNECT_SECONDS = 10.0


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: bytes, seconds: float = _SECONDS) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Connect by a descriptor of the directory: a socket's path may be 107 bytes long only, unix(7)."""
        directory, name = os.path.split(self._path)
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(_CONNECT_SECONDS)
            self.sock.connect(f"/proc/self/fd/{fd}/{os.fsdecode(name)}")
            self.sock.settimeout(self.timeout)
        except OSError:
            self.sock.close()
            raise
        finally:
            os.close(fd)


class Service:
    """The running service, for the user whose process this is. Each call is a connection of its own."""

    def __init__(self, path: bytes) -> None:
        self._path = path

    def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | None] | None = None,
        body: Mapping[str, object] | None = None,
        seconds: float = _SECONDS,
    ) -> object:
        """The JSON value that the service answers; what is None in `query` and `body` is left out.

        `seconds` is how long it may be silent. Raises ServiceRefusedError with the service's own sentence,
        and NoServiceError.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        asked = _BASE + path + (f"?{urlencode(given)}" if given else "")
        content = None
        if body is not None:
            content = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
        headers = {"Content-Type": "application/json"} if content is not None else {}
        connection = _UnixConnection(self._path, seconds)
        try:
            connection.request(method, asked, content, headers)
            response = connection.getresponse()
            document = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoServiceError(_sentence(self._path, error)) from error
        finally:
            connection.close()
        if response.status >= 400:
            raise ServiceRefusedError(str(document["error"]), response.status, int(document["status"]))
        return document


def connect(runtime_dir: bytes) -> Service:
    """The service whose runtime directory this is. Raises NoServiceError when none answers there."""
    path = os.path.join(runtime_dir, CONTROL_NAME)
    connection = _UnixConnection(path)
    try:
        connection.connect()
    except OSError as error:
        raise NoServiceError(_sentence(path, error)) from error
    finally:
        connection.close()
    return Service(path)


def _sentence(path: bytes, error: Exception) -> str:
    why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return (
        f"there is no service to ask at {show(path)} ({why}): without root, commands need it. "
        "For caches of your own: cachewarden --user"
    )
