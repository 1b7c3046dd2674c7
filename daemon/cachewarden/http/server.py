"""The server: a thread with an event loop of its own.

The main loop and the workers may be busy or stuck in a dead mount; this thread reads memory only,
and answers.
"""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from cachewarden.clock import Clock
from cachewarden.errors import ListenError
from cachewarden.http.address import Address, is_ours
from cachewarden.http.nonsense import ignore_nonsense
from cachewarden.http.page import STYLE_HASH, PageSnapshot, render_page
from cachewarden.paths import show

_HEADERS = {
    "Server": "cachewarden",
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        f"default-src 'none'; style-src '{STYLE_HASH}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_PLAIN = "text/plain"


@dataclass(frozen=True, slots=True)
class Content:
    """What is served. Called on the server's thread; each must answer from memory, at once.

    `metrics`: the page for Prometheus and its content type. `alive`: whether the main loop turns.
    `ready`: whether the configuration is valid and the sockets are bound.
    """

    metrics: Callable[[], tuple[bytes, str]]
    snapshot: Callable[[], PageSnapshot]
    alive: Callable[[], bool]
    ready: Callable[[], bool]


class HttpServer:
    """Serves `content` at an address such as `127.0.0.1:9843`. Raises ValueError for what is none."""

    def __init__(self, address: str, content: Content, clock: Clock) -> None:
        self._address = Address.parse(address)
        self._content = content
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._failure: Exception | None = None
        self.ports: tuple[int, ...] = ()

    def start(self) -> None:
        """Bind, in the caller's thread, and begin to answer. Raises ListenError."""
        sockets = self._address.bind()
        self.ports = tuple(each.getsockname()[1] for each in sockets)
        begun = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(sockets, begun), name="http", daemon=True)
        self._thread.start()
        begun.wait()
        if self._failure is not None:
            raise ListenError(f"cannot serve on {self._address}: {self._failure}") from self._failure

    def stop(self) -> None:
        """Close the sockets; waits at most three seconds for answers under way."""
        if self._thread is not None and self._loop is not None and self._ending is not None:
            if self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join(3)
            self._thread = None

    def _run(self, sockets: list[socket.socket], begun: threading.Event) -> None:
        try:
            asyncio.run(self._serve(sockets, begun))
        except Exception as error:  # noqa: BLE001  it is raised where start() was called
            self._failure = error
        finally:
            begun.set()
            for each in sockets:
                each.close()

    async def _serve(self, sockets: list[socket.socket], begun: threading.Event) -> None:
        ignore_nonsense()
        runner = web.AppRunner(
            self._application(),
            access_log=None,
            handle_signals=False,
            shutdown_timeout=0.5,
            keepalive_timeout=30,
        )
        await runner.setup()
        try:
            for each in sockets:
                await web.SockSite(runner, each).start()
            self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
            begun.set()
            await self._ending.wait()
        finally:
            await runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._only_ours])
        application.on_response_prepare.append(_add_headers)
        application.router.add_get("/", self._page)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/healthz", self._health)
        application.router.add_get("/readyz", self._readiness)
        return application

    @web.middleware
    async def _only_ours(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        transport = request.transport
        reached = transport.get_extra_info("sockname")[0] if transport is not None else ""
        if not is_ours(request.headers.get("Host"), self._address, reached):
            return web.Response(
                status=421,
                content_type=_PLAIN,
                text="The Host header names another machine. Use this machine's name or address.\n",
            )
        return await handler(request)

    async def _page(self, _: web.Request) -> web.Response:
        text = render_page(self._content.snapshot(), self._clock.wall_ns())
        return web.Response(text=text, content_type="text/html", charset="utf-8")

    async def _metrics(self, _: web.Request) -> web.Response:
        body, content_type = self._content.metrics()
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _health(self, _: web.Request) -> web.Response:
        if self._content.alive():
            return web.Response(text="ok\n", content_type=_PLAIN)
        return web.Response(status=503, text="the main loop does not turn\n", content_type=_PLAIN)

    async def _readiness(self, _: web.Request) -> web.Response:
        ready = self._content.ready()
        locations = [
            {
                "name": each.location,
                "path": show(each.path),
                "available": each.available,
                "measured": each.bytes is not None,
            }
            for each in self._content.snapshot().locations
        ]
        return web.json_response({"ready": ready, "locations": locations}, status=200 if ready else 503)


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)
