"""What others reach the service by: metrics and page, at an address that may change; the control socket."""

from collections.abc import Callable

from cachewarden.client import CONTROL_NAME
from cachewarden.errors import ListenError
from cachewarden.http import Address, Content, ControlServer, HttpServer, UnixSocket
from cachewarden.logs import get_logger
from cachewarden.service.control import Desk, Host
from cachewarden.service.dispatcher import Dispatcher
from cachewarden.settings import Settings


class Door:
    """At most one server of each kind. `open` and `close` are called by the main loop."""

    def __init__(self, content: Content, dispatcher: Dispatcher, settings: Callable[[], Settings]) -> None:
        self._content = content
        self._clock = dispatcher.organs.clock
        self._settings = settings
        self._desk = Desk(Host(dispatcher, settings))
        self._server: HttpServer | None = None
        self._at: tuple[str, int] | None = None
        self._control: ControlServer | None = None

    def open(self, at: tuple[str, int] | None) -> None:
        """Serve at this host and port; None: nowhere. Raises ListenError, and all stays as it was.

        The control socket opens with the first call; what prevents it is said, and prevents nothing else.
        """
        if at != self._at:
            fresh = None
            if at is not None:
                fresh = HttpServer(str(Address(*at)), self._content, self._clock)
                fresh.start()  # before the old one ends: when it cannot be bound, the old one goes on
            self._stop()
            self._server, self._at = fresh, at
        if self._control is None:
            self._open_control()

    def close(self) -> None:
        """Serve no more."""
        self._stop()
        if self._control is not None:
            self._desk.close()  # first: nobody may wait for a disk any longer
            self._control.stop()
            self._control = None

    def _open_control(self) -> None:
        daemon = self._settings().daemon
        at = UnixSocket(daemon.runtime_dir, CONTROL_NAME, everybody=not daemon.user_mode)
        control = ControlServer(at, self._desk.answer)
        try:
            control.start()
        except ListenError as error:
            get_logger().error("no control socket, skipping", error=str(error))
        else:
            self._control = control

    def _stop(self) -> None:
        if self._server is not None:
            self._server.stop()
        self._server, self._at = None, None
