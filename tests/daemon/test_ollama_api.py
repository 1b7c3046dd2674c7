"""What a server does with its time is its own business; ours is bounded."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from cachewarden.evict.served.api import Api, ServerError


@pytest.fixture(params=[b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-"])
def dripping(request) -> Iterator[tuple[str, int]]:
    """A server that answers byte by byte, in the body or in its headers."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            line, _ = server.accept()
            with line:
                line.recv(4096)
                try:
                    line.sendall(request.param)
                    for _ in range(600):
                        line.sendall(b"x")
                        time.sleep(0.1)
                except OSError:
                    return

        thread = threading.Thread(target=answer)
        thread.start()
        yield server.getsockname()
        thread.join()


def test_an_answer_that_never_ends_is_not_waited_for(dripping):
    """Each byte comes in time."""
    begun = time.monotonic()
    with pytest.raises(ServerError):
        Api(dripping, timeout_seconds=1.0).models()
    assert time.monotonic() - begun < 30


def test_where_nobody_listens_there_is_no_server():
    """Refused at once."""
    with pytest.raises(ServerError, match="refused"):
        Api(("127.0.0.1", 1), timeout_seconds=5.0).loaded()
