"""The three questions that we have for an Ollama server (`docs/api.md`, `server/routes.go`).

`GET /api/tags`: what it has, with the digest of each manifest. `GET /api/ps`: what is loaded.
`DELETE /api/delete`: remove a model, then the layers that no other names.
"""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_TIMEOUT_SECONDS = 20.0
_ANSWER_MAX = 16 << 20
_HOST, _NAMESPACE, _TAG = "registry.ollama.ai", "library", "latest"


class ServerError(Exception):
    """The server does not answer, or not as it should."""


class Api:
    """One server. Every call opens a connection of its own, for so long; all raise ServerError."""

    def __init__(self, address: tuple[str, int], timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self._address = address
        self._timeout_seconds = timeout_seconds

    def models(self) -> dict[str, str]:
        """The digest of the manifest (hexadecimal) of each model, by its full name."""
        return {name: digest for name, digest in listed(self._ask("GET", "/api/tags")) if digest}

    def loaded(self) -> set[str]:
        """Full names of the models that are in memory."""
        return {name for name, _ in listed(self._ask("GET", "/api/ps"))}

    def delete(self, name: str) -> None:
        """Remove a model."""
        # Versions before 0.5 read `name`.
        self._ask("DELETE", "/api/delete", json.dumps({"model": name, "name": name}))

    def _ask(self, method: str, path: str, body: str | None = None) -> bytes:
        connection = http.client.HTTPConnection(*self._address, timeout=self._timeout_seconds)
        try:
            with self._ended_in_time(connection):
                headers = {"Content-Type": "application/json"} if body is not None else {}
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                text = answer.read(_ANSWER_MAX)
        except (OSError, http.client.HTTPException) as error:
            raise ServerError(f"{method} {path}: {error}") from error
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise ServerError(f"{method} {path}: status {answer.status}")
        return text

    @contextmanager
    def _ended_in_time(self, connection: http.client.HTTPConnection) -> Iterator[None]:
        """The time-out of a socket is about each byte: this one is about the whole answer."""
        connection.connect()
        timer = threading.Timer(self._timeout_seconds, _hang_up, (connection.sock,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # the descriptor may be somebody else's after this


def _hang_up(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def listed(text: bytes) -> list[tuple[str, str]]:
    """Full name and digest (hexadecimal, or empty) of each model in an answer. Raises ServerError."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ServerError(f"no JSON: {error}") from error
    models = found.get("models") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(models, list | None):
        raise ServerError("no list of models")
    return [_model(each) for each in models or ()]


def _model(found: Any) -> tuple[str, str]:
    name = found.get("model") or found.get("name") if isinstance(found, dict) else None
    if not isinstance(name, str):
        raise ServerError("a model without a name")
    digest = found.get("digest")
    return full_name(name), digest.removeprefix("sha256:") if isinstance(digest, str) else ""


def full_name(name: str) -> str:
    """HOST/NAMESPACE/MODEL:TAG; what Ollama leaves out when it shows a name is put back."""
    path, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        path, tag = name, _TAG
    parts = path.split("/")
    missing = [_HOST, _NAMESPACE][: max(0, 3 - len(parts))]
    return f"{'/'.join((*missing, *parts))}:{tag}"
