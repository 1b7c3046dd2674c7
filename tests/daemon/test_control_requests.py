"""The control socket's HTTP side: who asks is known, and no request harms whoever else asks."""

import json
import os
import socket
import threading
import time
from contextlib import closing
from urllib.parse import quote

import pytest

from cachewarden.errors import ListenError
from cachewarden.http import ControlServer, Question, Reply, UnixSocket

BIG = 65 << 10


class Answers:
    """What the server asks for its replies; it keeps the questions, and may be slow."""

    def __init__(self):
        self.asked = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, question: Question) -> Reply:
        self.asked.append(question)
        self.go.wait(30)
        return Reply(200, {"ok": True})


@pytest.fixture
def answers():
    return Answers()


@pytest.fixture
def at(tmp_path):
    return UnixSocket(os.fsencode(tmp_path / ("a-long-name" * 12)), b"control.sock", everybody=True)


@pytest.fixture
def server(answers, at):
    made = ControlServer(at, answers)
    made.start()
    yield made
    answers.go.set()
    made.stop()


def connect(at):
    directory = os.open(os.path.dirname(at.path), os.O_PATH)
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(30)
    client.connect(f"/proc/self/fd/{directory}/control.sock")
    os.close(directory)
    return client


def say(at, raw):
    """Send bytes; the status and the JSON that come back, or None for a connection that was closed."""
    with closing(connect(at)) as client:
        try:
            client.sendall(raw)
            content = b""
            while piece := client.recv(65536):
                content += piece
        except ConnectionError:
            return None
    if not content:
        return None
    head, _, body = content.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def post(at, body, more=b""):
    head = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n" % (len(body), more)
    return say(at, head + body)


def test_the_kernel_says_who_asks(server, answers, at):
    assert say(at, b"GET /p?a=1&b=%FF HTTP/1.1\r\nHost: anything\r\n\r\n")[0] == 200
    (question,) = answers.asked
    assert (question.peer.uid, question.peer.gid) == (os.getuid(), os.getgid())
    assert question.peer.pid == os.getpid()
    assert set(question.peer.groups) == set(os.getgroups())
    assert (question.method, question.path, dict(question.query)) == ("GET", "/p", {"a": "1", "b": "\ufffd"})


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"{'a': 1}",
        b'{"a": 1, "a": 2}',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b"\xff\xfe",
        b"[" * 60000,
        b'{"a": ' * 10000,
        b"nonsense",
        b"null",
        b" null\n",
    ],
    ids=lambda body: repr(body[:12]),
)
def test_what_is_no_json_is_refused_and_asks_nobody(server, answers, at, body):
    status, said = post(at, body)
    assert status == 400
    assert json.loads(said)["status"] == 2
    assert answers.asked == []


@pytest.mark.parametrize("chunked", [True, False])
def test_a_huge_body_is_refused_before_it_is_read_to_its_end(server, answers, at, chunked):
    if chunked:
        head = b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = say(at, head + (b"8000\r\n" + b"x" * 0x8000 + b"\r\n") * 3 + b"0\r\n\r\n")
    else:
        answer = say(at, b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
    assert answer is None or answer[0] == 413
    assert answers.asked == []


@pytest.mark.parametrize(
    "raw",
    [
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b",
        b"GET /x HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 10000 + b"\r\n\r\n",
    ],
    ids=lambda raw: repr(raw[:70]),
)
def test_what_is_no_http_is_refused_as_all_errors_are_and_costs_no_line_in_the_log(
    server, answers, at, raw, caplog
):
    answer = say(at, raw)
    if answer is not None:  # a client that is still sending when it is sent away may hear nothing
        status, said = answer
        assert 400 <= status < 500
        assert set(json.loads(said)) == {"error", "status"}
    assert answers.asked == []
    assert post(at, b"{}")[0] == 200
    assert caplog.records == []


def test_the_longest_path_that_there_is_fits_into_a_query(server, answers, at):
    path = "/" + quote("\\xff") * 4095
    assert say(at, f"GET /explain?path={path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())[0] == 200
    assert answers.asked[0].query["path"] == "/" + "\\xff" * 4095


def test_a_bug_in_what_reads_a_request_is_a_500_in_the_shape_of_all_errors_and_is_logged(answers, at, caplog):
    def broken(question: Question) -> Reply:
        raise RuntimeError("secret detail")

    made = ControlServer(at, broken)
    made.start()
    try:
        status, said = post(at, b"{}")
    finally:
        made.stop()
    assert status == 500
    assert json.loads(said)["status"] == 70
    assert b"secret" not in said
    assert [type(each.exc_info[1]) for each in caplog.records] == [RuntimeError]


def test_a_web_page_that_reaches_the_socket_through_a_proxy_is_refused(server, answers, at):
    assert post(at, b"{}", b"Origin: https://example.org\r\n")[0] == 403
    assert answers.asked == []


def test_a_name_that_is_given_twice_in_a_query_is_refused(server, answers, at):
    assert say(at, b"GET /x?a=1&a=2 HTTP/1.1\r\nHost: x\r\n\r\n")[0] == 400


def test_one_user_has_a_few_requests_at_work_and_leaving_makes_no_room_for_more(server, answers, at):
    answers.go.clear()
    hung = [connect(at) for _ in range(4)]
    for client in hung:
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
    end = time.monotonic() + 20
    while len(answers.asked) < 4:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert say(at, b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")[0] == 429
    for client in hung:
        client.close()
    assert say(at, b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")[0] == 429
    answers.go.set()
    end = time.monotonic() + 20
    while (answer := say(at, b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"))[0] != 200:
        assert answer[0] == 429
        assert time.monotonic() < end
        time.sleep(0.02)


def test_clients_that_say_nothing_are_bounded_and_sent_away(server, answers, at):
    silent = [connect(at) for _ in range(40)]
    gone = 0
    end = time.monotonic() + 40
    for client in silent:
        client.settimeout(max(end - time.monotonic(), 0.1))
        with closing(client):
            assert client.recv(10) == b""  # closed by the server: too many of them, or too slow
            gone += 1
    assert gone == 40
    assert post(at, b"{}")[0] == 200


def test_a_client_that_reads_nothing_holds_up_nobody(server, answers, at):
    with closing(connect(at)) as deaf:
        deaf.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
        assert post(at, b"{}")[0] == 200


def test_a_socket_that_answers_is_not_taken_from_its_service(server, answers, at, tmp_path):
    other = ControlServer(UnixSocket(os.path.dirname(at.path), b"control.sock", everybody=True), answers)
    with pytest.raises(ListenError, match="another service"):
        other.start()
    assert post(at, b"{}")[0] == 200


def test_something_that_is_no_socket_is_left_where_it_is(answers, tmp_path):
    (tmp_path / "control.sock").write_text("precious")
    at = UnixSocket(os.fsencode(tmp_path), b"control.sock", everybody=False)
    with pytest.raises(ListenError, match="no socket"):
        ControlServer(at, answers).start()
    assert (tmp_path / "control.sock").read_text() == "precious"


def test_a_name_that_another_has_put_there_stays_when_the_server_ends(server, answers, at):
    os.unlink(at.path)
    with open(at.path, "w", encoding="utf-8") as file:
        file.write("another's")
    server.stop()
    assert os.path.exists(at.path)
