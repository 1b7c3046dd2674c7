"""The HTTP side of the service, opened anew when its address changes."""

from cachewarden.clock import Clock
from cachewarden.http import Address, Content, HttpServer


class Door:
    """At most one server. `open` and `close` are called by the main loop."""

    def __init__(self, content: Content, clock: Clock) -> None:
        self._content = content
        self._clock = clock
        self._server: HttpServer | None = None
        self._at: tuple[str, int] | None = None

    def open(self, at: tuple[str, int] | None) -> None:
        """Serve at this host and port; None: nowhere. Raises ListenError, and all stays as it was."""
        if at == self._at:
            return
        fresh = None
        if at is not None:
            fresh = HttpServer(str(Address(*at)), self._content, self._clock)
            fresh.start()  # before the old one ends: when it cannot be bound, the old one goes on
        self.close()
        self._server, self._at = fresh, at

    def close(self) -> None:
        """Serve no more."""
        if self._server is not None:
            self._server.stop()
        self._server, self._at = None, None
