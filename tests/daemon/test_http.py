"""The HTTP side over real sockets."""

import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from cachewarden.clock import SetClock
from cachewarden.errors import ListenError
from cachewarden.http import Address, Content, HttpServer
from cachewarden.metrics import LocationFigures, ServiceFigures, Snapshot

NOW = SetClock().wall_ns()


@dataclass
class State:
    """What the server under test has to tell."""

    locations: tuple[LocationFigures, ...] = ()
    alive: bool = True
    ready: bool = True
    metrics: Callable[[], tuple[bytes, str]] = field(
        default=lambda: (b"some_metric 1\n", "text/plain; version=0.0.4")
    )

    def serve_metrics(self) -> tuple[bytes, str]:
        return self.metrics()

    def content(self) -> Content:
        return Content(
            metrics=self.serve_metrics,
            snapshot=lambda: Snapshot(ServiceFigures("1.2.3", NOW), self.locations),
            alive=lambda: self.alive,
            ready=lambda: self.ready,
        )


@dataclass(frozen=True)
class Answer:
    status: int
    body: str
    headers: dict[str, str]


def ask(
    server: HttpServer, path: str = "/", host: str | None = None, method: str = "GET", at: str = "127.0.0.1"
) -> Answer:
    connection = http.client.HTTPConnection(at, server.ports[0], timeout=5)
    try:
        connection.request(method, path, headers={} if host is None else {"Host": host})
        response = connection.getresponse()
        return Answer(response.status, response.read().decode(), dict(response.getheaders()))
    finally:
        connection.close()


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
def server(state) -> Iterator[HttpServer]:
    server = HttpServer("127.0.0.1:0", state.content(), SetClock())
    server.start()
    yield server
    server.stop()


def test_metrics_are_served_as_they_are(server):
    answer = ask(server, "/metrics")
    assert (answer.status, answer.body) == (200, "some_metric 1\n")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4"


def test_health_is_whether_the_main_loop_turns(server, state):
    assert ask(server, "/healthz").status == 200
    state.alive = False
    assert ask(server, "/healthz").status == 503


def test_readiness_says_which_locations_were_measured(server, state):
    state.locations = (
        LocationFigures("a", b"/a\xff", available=True, bytes=1),
        LocationFigures("b", b"/b", available=False),
    )
    answer = ask(server, "/readyz")
    assert answer.status == 200
    assert json.loads(answer.body) == {
        "ready": True,
        "locations": [
            {"name": "a", "path": r"/a\xff", "available": True, "measured": True},
            {"name": "b", "path": "/b", "available": False, "measured": False},
        ],
    }
    state.ready = False
    assert ask(server, "/readyz").status == 503


@pytest.mark.parametrize("path", ["/", "/metrics", "/healthz", "/readyz"])
def test_head_is_answered_without_a_body(server, path):
    answer = ask(server, path, method="HEAD")
    assert (answer.status, answer.body) == (200, "")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
@pytest.mark.parametrize("path", ["/", "/metrics"])
def test_nothing_can_be_changed_from_here(server, method, path):
    assert ask(server, path, method=method).status == 405


@pytest.mark.parametrize("path", ["/nothing", "/../../etc/passwd", "/api/v1/evict", "/%2e%2e/"])
def test_there_is_nothing_else(server, path):
    answer = ask(server, path)
    assert answer.status == 404
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


OURS = [
    "localhost",
    "127.0.0.1",
    "[::1]",
    "LOCALHOST",
    "localhost.",
    socket.gethostname(),
    socket.gethostname().split(".")[0],
]
STRANGERS = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.2",
    "10.0.0.1",
    "",
    "[::1",
    "[]",
]


@pytest.mark.parametrize("host", OURS)
def test_a_host_header_with_a_name_of_ours_is_answered(server, host):
    for port in ("", f":{server.ports[0]}", ":80"):
        assert ask(server, "/metrics", host=host + port).status == 200


@pytest.mark.parametrize("host", STRANGERS)
@pytest.mark.parametrize("path", ["/", "/metrics", "/healthz", "/nothing"])
def test_a_host_header_with_another_name_gets_nothing(server, host, path):
    answer = ask(server, path, host=host)
    assert answer.status == 421
    assert "metric" not in answer.body


def test_a_request_without_a_host_header_gets_nothing(server):
    with socket.create_connection(("127.0.0.1", server.ports[0]), timeout=5) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert b" 421 " in connection.recv(65536).splitlines()[0]


def test_on_all_addresses_the_one_that_was_reached_is_a_name_of_ours(state):
    server = HttpServer("0.0.0.0:0", state.content(), SetClock())
    server.start()
    try:
        assert ask(server, host="127.0.0.5", at="127.0.0.5").status == 200
        assert ask(server, host="127.0.0.6", at="127.0.0.5").status == 421
        assert ask(server, host="evil.example", at="127.0.0.5").status == 421
    finally:
        server.stop()


def test_every_answer_forbids_scripts_frames_and_guessing(server):
    for answer in (ask(server), ask(server, "/nothing"), ask(server, host="evil.example")):
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none';")
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Server"] == "cachewarden"


def test_an_address_that_is_taken_is_an_error_that_names_it_and_frees_nothing_else(server, state):
    taken = f"127.0.0.1:{server.ports[0]}"
    with pytest.raises(ListenError, match=rf"cannot listen on {taken}: address already in use"):
        HttpServer(taken, state.content(), SetClock()).start()
    assert ask(server).status == 200


@pytest.mark.parametrize("address", ["203.0.113.7:9843", "no-such-host.invalid:9843"])
def test_an_address_of_another_machine_is_an_error_that_names_it(state, address):
    with pytest.raises(ListenError, match=address):
        HttpServer(address, state.content(), SetClock()).start()


@pytest.mark.parametrize(
    "text", ["", "9843", "localhost", "localhost:", "::1:9843", "a:b", "h:65536", "h:-1", "h:٣", "[::1]"]
)
def test_what_is_no_address_is_refused(state, text):
    with pytest.raises(ValueError, match="is no address"):
        HttpServer(text, state.content(), SetClock())


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:9843", "127.0.0.1", 9843), ("[::1]:1", "::1", 1), (":80", "", 80), ("host:0", "host", 0)],
)
def test_addresses_are_read_and_shown(text, host, port):
    assert Address.parse(text) == Address(host, port)
    assert str(Address.parse(text)) == text


def test_localhost_is_served_on_what_the_machine_has_of_it(state):
    server = HttpServer("localhost:0", state.content(), SetClock())
    server.start()
    try:
        assert ask(server, host="localhost", at="localhost").status == 200
    finally:
        server.stop()


def test_it_stops_at_once_and_leaves_no_thread_socket_or_descriptor(state):
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    server = HttpServer("127.0.0.1:0", state.content(), SetClock())
    for _ in range(3):
        server.start()
        idle = socket.create_connection(("127.0.0.1", server.ports[0]))
        slow = socket.create_connection(("127.0.0.1", server.ports[0]))
        slow.sendall(b"GET / HTTP/1.1\r\n")
        assert ask(server).status == 200
        start = time.monotonic()
        server.stop()
        server.stop()
        assert time.monotonic() - start < 3
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.ports[0]), timeout=2)
        idle.close()
        slow.close()
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == (descriptors, threads)


def test_clients_that_send_nothing_hold_nobody_up(server):
    stuck = [socket.create_connection(("127.0.0.1", server.ports[0])) for _ in range(50)]
    start = time.monotonic()
    for _ in range(50):
        assert ask(server, "/metrics").status == 200
    assert time.monotonic() - start < 5
    for each in stuck:
        each.close()


def test_an_answer_that_fails_is_a_500_without_details_and_the_next_one_works(server, state):
    works = state.metrics

    def fails() -> tuple[bytes, str]:
        raise RuntimeError("secret detail")

    state.metrics = fails
    answer = ask(server, "/metrics")
    assert answer.status == 500
    assert "secret" not in answer.body
    state.metrics = works
    assert ask(server, "/metrics").status == 200


def test_nonsense_on_the_socket_is_refused_survived_and_costs_no_line_in_the_log(server, caplog):
    for nonsense in (
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\0" * 1000,
        b"A" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: \0\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
    ):
        with socket.create_connection(("127.0.0.1", server.ports[0]), timeout=5) as connection:
            connection.sendall(nonsense)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(65536)
    assert ask(server).status == 200
    assert caplog.records == []
