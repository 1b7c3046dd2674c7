"""The control socket: HTTP and JSON for this machine's users, who are known by the kernel's word.

One request for each connection, read to its end before anything is done about it: a client that is slow,
hangs or talks nonsense costs one descriptor for a while. What is asked is answered by threads, of which each
user gets a few; the loop itself never waits.
"""

import asyncio
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from aiohttp import web

from cachewarden.errors import ListenError
from cachewarden.http.nonsense import ignore_nonsense
from cachewarden.http.peer import Peer, peer_of
from cachewarden.http.reply import Reply, encoded, refusal
from cachewarden.http.talk import Talk
from cachewarden.http.unix import UnixSocket

MOST_BYTES = 64 << 10  # of a request's body; aiohttp itself bounds its head
_MOST_CONNECTIONS = 32  # of one user at a time
_MOST_ASKED = 4  # requests of one user that are at work at a time
_THREADS = 16
_READ_SECONDS = 10.0
_WRITE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Question:
    """One request. `query` has each name once; `body` is its JSON value, None without one."""

    peer: Peer
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None


class _RefusedError(Exception):
    """The request itself is wrong."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class ControlServer:
    """Serves `answer` at a unix socket. `answer` is called in threads, may wait, and must not raise."""

    def __init__(self, at: UnixSocket, answer: Callable[[Question], Reply]) -> None:
        self._at = at
        self._answer = answer
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._failure: Exception | None = None
        self._asked: Counter[int] = Counter()
        self._connected: dict[int, list[asyncio.Transport]] = {}
        self._late: dict[int, asyncio.TimerHandle] = {}

    def start(self) -> None:
        """Listen, in the caller's thread, and begin to answer. Raises ListenError."""
        listening = self._at.listen()
        begun = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(listening, begun), name="control", daemon=True
        )
        self._thread.start()
        begun.wait()
        if self._failure is not None:
            raise ListenError(f"cannot serve the control socket: {self._failure}") from self._failure

    def stop(self) -> None:
        """Remove the socket and answer no more; what is at work is not waited for."""
        self._at.remove()
        if self._thread is not None and self._loop is not None and self._ending is not None:
            if self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join(3)
            self._thread = None

    def _run(self, listening: socket.socket, begun: threading.Event) -> None:
        try:
            asyncio.run(self._serve(listening, begun))
        except Exception as error:  # noqa: BLE001  it is raised where start() was called
            self._failure = error
        finally:
            begun.set()
            listening.close()

    async def _serve(self, listening: socket.socket, begun: threading.Event) -> None:
        ignore_nonsense()
        runner = web.ServerRunner(web.Server(self._handle), handle_signals=False, shutdown_timeout=0.5)
        await runner.setup()
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        # Not the loop's own executor: asyncio.run would wait for its threads, and one may wait for a disk.
        pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="control")
        self._pool = pool
        accepting = asyncio.create_task(self._accept(listening, runner))
        begun.set()
        try:
            await self._ending.wait()
        finally:
            accepting.cancel()
            pool.shutdown(wait=False, cancel_futures=True)
            await runner.cleanup()

    async def _accept(self, listening: socket.socket, runner: web.ServerRunner) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connected, _ = await loop.sock_accept(listening)
            except OSError:  # out of descriptors: those that are late give theirs back
                await asyncio.sleep(0.1)
                continue
            try:
                uid = peer_of(connected).uid
            except OSError:
                connected.close()
                continue
            mine = [each for each in self._connected.get(uid, ()) if not each.is_closing()]
            server = runner.server
            if len(mine) >= _MOST_CONNECTIONS or server is None:
                connected.close()
                continue
            transport, _ = await loop.connect_accepted_socket(partial(Talk, server, loop), connected)
            self._connected[uid] = [*mine, transport]
            self._bound(transport, _READ_SECONDS)

    def _bound(self, transport: asyncio.BaseTransport, seconds: float) -> None:
        """End a connection unless it is through with what it does within this time."""
        assert isinstance(transport, asyncio.Transport)
        self._unbound(transport)
        timer = asyncio.get_running_loop().call_later(seconds, self._abort, transport)
        self._late[id(transport)] = timer

    def _unbound(self, transport: asyncio.BaseTransport) -> None:
        timer = self._late.pop(id(transport), None)
        if timer is not None:
            timer.cancel()

    def _abort(self, transport: asyncio.Transport) -> None:
        self._late.pop(id(transport), None)
        transport.abort()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        transport = request.transport
        if transport is None:
            return web.Response(status=400)
        try:
            question = await _read(request, transport)
        except _RefusedError as error:
            response = encoded(refusal(error.status, str(error)))
        else:
            self._unbound(transport)
            response = await self._ask(question)
        self._bound(transport, _WRITE_SECONDS)
        response.force_close()
        return response

    async def _ask(self, question: Question) -> web.Response:
        uid = question.peer.uid
        if self._asked[uid] >= _MOST_ASKED:
            many = f"{_MOST_ASKED} of your requests are being worked on; wait for one of them"
            return encoded(refusal(429, many))
        self._asked[uid] += 1
        # A list of a million entries is text in seconds: that, too, is not the loop's work.
        asked = asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: encoded(self._answer(question))
        )
        # When it is done and not when its client has left: leaving must not make room for more.
        asked.add_done_callback(lambda _: self._over(uid))
        return await asked

    def _over(self, uid: int) -> None:
        self._asked[uid] -= 1
        if not self._asked[uid]:
            del self._asked[uid]


async def _read(request: web.BaseRequest, transport: asyncio.BaseTransport) -> Question:
    if request.headers.get("Origin") is not None:
        raise _RefusedError(HTTPStatus.FORBIDDEN, "this is not for web pages")
    length = request.content_length
    if length is not None and length > MOST_BYTES:
        raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has {MOST_BYTES} bytes at most")
    content = await _content(request)
    query: dict[str, str] = {}
    for name, value in request.query.items():
        if name in query:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, f"{name} is given twice")
        query[name] = value
    peer = peer_of(transport.get_extra_info("socket"))
    return Question(peer, request.method, request.path, query, _json(content))


async def _content(request: web.BaseRequest) -> bytes:
    content = bytearray()
    try:
        async for piece in request.content.iter_any():
            content += piece
            if len(content) > MOST_BYTES:
                raise _RefusedError(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has {MOST_BYTES} bytes at most"
                )
    except web.RequestPayloadError:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "the body is cut off, or not coded as it says") from None
    return bytes(content)


def _json(content: bytes) -> object:
    if not content:
        return None
    try:
        found: object = json.loads(
            content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number
        )
    except (ValueError, RecursionError) as error:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, f"the body is no JSON: {error}") from None
    if found is None:  # it must not be taken for no body, which means all locations
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "the body must be a JSON object")
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is given twice")
    return found


def _no_number(text: str) -> object:
    raise ValueError(f"{text} is no number")
