"""The log and the audit file, written to real pipes, terminals and full disks."""

import io
import json
import logging
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from cachewarden.logs import AuditFile, Changes, configure, get_logger
from cachewarden.logs.journal import SOCKET
from cachewarden.paths import unshow
from cachewarden_policies.reasons import EvictReason

NASTY = [
    b"models--\xff\xfe",
    b"a\nERROR quota daemon disabled",
    b'q"uo\\te',
    b"\x1b[2J\r\x00",
    "\u2028\u202e".encode(),
    b"a=b c",
    "\u00e9".encode(),
    b"",
]


def logged(log_format: str, log: Callable[[], object], level: str = "info") -> str:
    """What `log` writes, through a real pipe."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream, os.fdopen(reader, "rb") as source:
        configure(log_format, level, stream)
        log()
        stream.close()
        return source.read().decode()


def on_terminal(log: Callable[[], object]) -> str:
    controller, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream:
        configure("auto", "info", stream)
        log()
        found = os.read(controller, 65536).decode()
    os.close(controller)
    return found


@pytest.mark.parametrize("value", NASTY)
def test_json_is_one_line_and_gives_the_bytes_back(value):
    text = logged("json", lambda: get_logger().info("evicted", entry=value, reason=EvictReason.IDLE))
    assert text.count("\n") == 1
    event = json.loads(text)
    assert unshow(event["entry"]) == value
    assert (event["event"], event["level"], event["reason"]) == ("evicted", "info", "idle")


@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize("form", [bytes, "text", "key", "event"])
def test_key_value_text_is_one_printable_line_whatever_the_values_hold(value, form):
    text = value.decode("utf-8", "surrogateescape")

    def log():
        if form is bytes:
            get_logger().info("evicted", entry=value)
        elif form == "text":
            get_logger().info("evicted", entry=text, more=[value, {"k": text}])
        elif form == "key":
            get_logger().info("evicted", **{text or "k": 1})
        else:
            get_logger().info("evicted " + text)

    lines = logged("auto", log).splitlines()
    assert len(lines) == 1
    assert lines[0].isprintable()
    assert lines[0].startswith("time=")


@pytest.mark.parametrize("value", NASTY)
def test_a_terminal_gets_no_control_characters_but_our_colours(value):
    shown = on_terminal(lambda: get_logger().info("evicted", entry=value))
    assert "\x1b[36mentry" in shown
    for code in ("\x1b[2J", "\r\x00", "\u2028", "\u202e"):
        assert code not in shown
    assert shown.count("\n") == 1


def test_values_with_spaces_are_quoted_and_plain_ones_can_be_copied():
    text = logged("text", lambda: get_logger().info("e", a="two words", b=b"/x\xff", c=None, d=True, n=7))
    assert text.rstrip().endswith(r'event=e a="two words" b=/x\xff c= d=true n=7')


def test_an_exception_is_part_of_its_one_line():
    def log():
        try:
            os.stat(b"/nowhere\nERROR forged")
        except OSError:
            get_logger().exception("pass failed")

    for log_format in ("text", "json"):
        lines = logged(log_format, log).splitlines()
        assert len(lines) == 1
        assert "No such file" in lines[0]
    assert "Traceback (most recent call last):\r\n" in on_terminal(log)


def test_what_libraries_log_becomes_events_of_ours():
    text = logged("json", lambda: logging.getLogger("some.library").warning("lost %d\nevents", 3))
    event = json.loads(text)
    assert event["event"] == r"lost 3\nevents"
    assert event["library"] == "some.library"
    assert logged("json", lambda: logging.getLogger("some.library").info("chatter")) == ""


def test_a_library_that_formats_wrongly_is_still_heard():
    # In a process of its own: pytest's own handler takes offence at such a record.
    child = (
        "import logging, cachewarden.logs as l; l.configure('json');"
        "logging.getLogger('bad').warning('%d apples', 'x')"
    )
    done = subprocess.run([sys.executable, "-c", child], stderr=subprocess.PIPE, check=True)
    assert json.loads(done.stderr)["event"] == "%d apples"


def test_levels_hide_what_is_below_them():
    def log():
        get_logger().debug("quiet")
        get_logger().warning("loud")

    assert "quiet" not in logged("text", log)
    assert "quiet" in logged("text", log, "debug")
    assert logged("text", log, "error") == ""
    with pytest.raises(ValueError, match="loudly"):
        configure("text", "loudly")


def test_a_logger_taken_early_follows_a_later_configuration():
    logger = get_logger()
    assert "level=info" in logged("text", lambda: logger.info("one"))
    assert json.loads(logged("json", lambda: logger.info("two")))["event"] == "two"


CHILD = """
import os, sys
from cachewarden.logs import configure, get_logger
if os.environ.get("SET") == "1":
    found = os.fstat(2)
    os.environ["JOURNAL_STREAM"] = f"{found.st_dev}:{found.st_ino}"
configure("auto")
get_logger().warning("hot", n=1)
get_logger().info("cold")
"""


@pytest.mark.parametrize(
    ("environ", "begins"),
    [({"SET": "1"}, ["<4>hot n=1", "<6>cold"]), ({"JOURNAL_STREAM": "1:1"}, ["time=", "time="])],
)
def test_priorities_go_to_the_journal_and_to_nothing_that_only_inherited_its_name(environ, begins):
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        env={**os.environ, **environ},
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    if "SET" in environ and os.path.exists(SOCKET):
        begins = []  # they went to the real journal
    lines = done.stderr.splitlines()
    assert [line[: len(begin)] for line, begin in zip(lines, begins, strict=True)] == begins


FULL = """
import os, sys
from cachewarden.logs import configure, get_logger
configure(sys.argv[1])
for _ in range(2000):
    get_logger().info("x" * 100)
print("still here")
"""


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_full_disk_and_a_closed_pipe_stop_nothing(log_format):
    reader, writer = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    for broken in (writer, full):
        done = subprocess.run(
            [sys.executable, "-c", FULL, log_format],
            stdout=subprocess.PIPE,
            stderr=broken,
            text=True,
            check=False,
        )
        os.close(broken)
        assert (done.returncode, done.stdout) == (0, "still here\n")


def test_a_closed_stream_and_a_stream_without_descriptor_stop_nothing():
    closed = io.StringIO()
    closed.close()
    configure("text", "info", closed)
    get_logger().info("lost")
    memory = io.StringIO()
    configure("text", "info", memory)
    get_logger().info("kept")
    assert "event=kept\n" in memory.getvalue()


def test_a_value_that_cannot_be_shown_does_not_cost_the_event():
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError

    assert "Broken: RuntimeError" in logged("json", lambda: get_logger().info("odd", value=Broken()))
    assert json.loads(logged("json", lambda: get_logger().info("odd", value=float("nan"))))["value"] == "nan"


def test_lines_of_many_threads_do_not_mix(tmp_path):
    def log():
        threads = [
            threading.Thread(target=lambda: [get_logger().info("e", pad="x" * 500) for _ in range(20)])
            for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    # 120 lines of 600 bytes are more than a pipe holds, so they go to a file.
    path = tmp_path / "log"
    with open(path, "w") as stream:
        configure("json", "info", stream)
        log()
    with open(path) as written:
        assert [len(json.loads(line)["pad"]) for line in written] == [500] * 120


def test_the_audit_file_is_appended_to_and_private(tmp_path):
    path = os.fsencode(tmp_path / "audit.jsonl")
    for entry in NASTY:
        assert AuditFile(path).write({"entry": entry, "bytes": 4096}) is None
    with open(path) as written:
        records = [json.loads(line) for line in written]
    assert [unshow(record["entry"]) for record in records] == NASTY
    assert os.stat(path).st_mode & 0o007 == 0


def test_the_audit_file_follows_a_rotation(tmp_path):
    path = os.fsencode(tmp_path / "audit.jsonl")
    audit = AuditFile(path)
    audit.write({"n": 1})
    os.rename(path, path + b".1")
    audit.write({"n": 2})
    assert (tmp_path / "audit.jsonl").read_text() == '{"n": 2}\n'
    assert (tmp_path / "audit.jsonl.1").read_text() == '{"n": 1}\n'


def test_a_line_that_was_cut_off_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "audit.jsonl"
    path.write_text('{"n": 1}\n{"n": ')
    AuditFile(os.fsencode(path)).write({"n": 3})
    assert path.read_text().splitlines() == ['{"n": 1}', '{"n": ', '{"n": 3}']


def test_records_that_found_no_room_are_counted_where_the_next_one_is(tmp_path):
    audit = AuditFile(os.fsencode(tmp_path / "folder" / "audit"))
    assert [audit.write({"time": str(n), "n": n}) is None for n in range(3)] == [False] * 3
    (tmp_path / "folder").mkdir()
    assert [audit.write({"time": str(n), "n": n}) for n in (3, 4)] == [None, None]
    records = [json.loads(line) for line in (tmp_path / "folder" / "audit").read_text().splitlines()]
    assert records == [
        {"time": "3", "event": "lost", "records": 3},
        {"time": "3", "n": 3},
        {"time": "4", "n": 4},
    ]


def test_records_of_many_threads_are_whole_lines(tmp_path):
    audit = AuditFile(os.fsencode(tmp_path / "audit"))
    threads = [
        threading.Thread(target=lambda: [audit.write({"pad": "x" * 5000}) for _ in range(50)])
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (tmp_path / "audit").read_text().splitlines()
    assert [len(json.loads(line)["pad"]) for line in lines] == [5000] * 300


@pytest.mark.parametrize("path", [b"/nowhere/audit", b"/tmp", b"/dev/full"])
def test_an_audit_file_that_cannot_be_written_is_a_sentence_and_no_error(path):
    problem = AuditFile(path).write({"n": 1})
    assert problem is not None
    assert problem.startswith("the audit file")


def test_a_pipe_without_reader_as_audit_file_does_not_hold_the_service(tmp_path):
    path = os.fsencode(tmp_path / "pipe")
    os.mkfifo(path)
    assert AuditFile(path).write({"n": 1}) is not None


def test_a_state_is_said_when_it_changes_and_not_again():
    changes = Changes()
    said = [changes.changed("a", state, "fine") for state in ("fine", "short", "short", "fine", "fine")]
    assert said == [False, True, False, True, False]
    assert changes.changed("b", "short", "fine")
    assert changes.once("k")
    assert not changes.once("k")
    changes.forget("k")
    assert changes.once("k")


def test_what_was_seen_a_moment_ago_is_no_news_however_long_it_lasts():
    changes = Changes()
    assert changes.news("a", 100, 10)
    assert [changes.news("a", now, 10) for now in range(101, 200, 9)] == [False] * 11
    assert not changes.news("a", 191 + 9, 10)
    assert changes.news("a", 210, 10)
    assert changes.news("b", 201, 10)


def test_what_is_remembered_is_bounded_and_the_oldest_is_forgotten_first():
    changes = Changes()
    for number in range(60_000):
        changes.once(number)
        changes.once("asked for all the time")
    assert not changes.once("asked for all the time")
    assert not changes.once(59_999)
    assert changes.once(0)


def test_a_stream_that_was_closed_is_not_taken_for_what_opened_after_it(tmp_path):
    stream = open(tmp_path / "log", "w")  # noqa: SIM115
    configure("text", "info", stream)
    number = stream.fileno()
    stream.close()
    with open(tmp_path / "other", "w+") as other:
        assert other.fileno() == number
        get_logger().info("lost")
        assert other.read() == ""
