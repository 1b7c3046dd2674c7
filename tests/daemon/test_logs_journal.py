"""Events as fields of the journal, over a socket that takes what the journal would take."""

import io
import socket

import pytest

from cachewarden.logs.journal import Journal
from cachewarden.logs.sink import Sink


@pytest.fixture
def taker(tmp_path):
    """(path, receiving socket)."""
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as taking:
        taking.bind(path)
        taking.settimeout(5)
        yield path, taking


def parse(data):
    """The fields of a datagram, by the rules of the protocol."""
    fields = {}
    while data:
        line, _, rest = data.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if equals:
            fields[name.decode()] = value.decode()
            data = rest
        else:
            size = int.from_bytes(rest[:8], "little")
            fields[name.decode()] = rest[8 : 8 + size].decode()
            assert rest[8 + size : 9 + size] == b"\n"
            data = rest[9 + size :]
    return fields


def test_each_key_of_an_event_is_a_field(taker):
    path, taking = taker
    event = {"level": "warning", "event": "evicted", "location": "hub", "freed_bytes": "12", "odd key!": "x"}
    Journal(Sink(io.StringIO()), path).write("evicted location=hub", event)
    assert parse(taking.recv(65536)) == {
        "MESSAGE": "evicted location=hub",
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "cachewarden",
        "CACHEWARDEN_EVENT": "evicted",
        "CACHEWARDEN_LOCATION": "hub",
        "CACHEWARDEN_FREED_BYTES": "12",
        "CACHEWARDEN_ODD_KEY_": "x",
    }


def test_a_value_of_several_lines_cannot_make_fields_of_its_own(taker):
    path, taking = taker
    Journal(Sink(io.StringIO()), path).write("a\nPRIORITY=0", {"level": "info", "event": "b\nMESSAGE=c"})
    found = parse(taking.recv(65536))
    assert (found["MESSAGE"], found["PRIORITY"]) == ("a\nPRIORITY=0", "6")
    assert found["CACHEWARDEN_EVENT"] == "b\nMESSAGE=c"


def test_what_the_journal_does_not_take_goes_to_the_stream(tmp_path):
    stream = io.StringIO()
    Journal(Sink(stream), str(tmp_path / "nobody")).write("evicted entry=a", {"level": "error"})
    assert stream.getvalue() == "<3>evicted entry=a\n"


def test_a_line_longer_than_a_datagram_is_not_lost(taker):
    path, _ = taker
    stream = io.StringIO()
    Journal(Sink(stream), path).write("x" * 10_000_000, {"level": "info"})
    assert len(stream.getvalue()) == 10_000_004
