"""The OpenAPI file and the service say the same: each path, method, field and answer of it is tried."""

import contextlib
import json
import os
import re
import socket as sockets
from urllib.parse import quote, urlencode

import pytest
from tests.system.command import Warden
from tests.system.openapi import Api
from tests.system.users import Answer, User, ground

from cachewarden.service.control.desk import BASE, ROUTES

API = Api()
OPERATIONS = list(API.operations())
USER = User(50001)


class Running:
    """A service with a location `cache`: `mine` of the user, `theirs` of root, both 1 MiB."""

    def __init__(self, base: str) -> None:
        self.root = f"{base}/root"
        self.warden = Warden(f"{base}/warden")
        self.socket = os.path.join(self.warden.runtime_dir, "control.sock")

    def ask(self, method: str, path: str, fields: dict | None = None, *, user: User | None = None) -> Answer:
        """Fields go where the method has them; root asks unless a user is named."""
        body = None
        if method == "POST":
            body = json.dumps(fields or {})
        elif fields:
            path += "?" + urlencode(fields)
        if user is not None:
            return user.ask(self.socket, method, BASE + path, body)
        return self.raw(method, BASE + path, body)

    def raw(self, method: str, target: str, body: str | None) -> Answer:
        """One request as root, from this process."""
        directory = os.open(os.path.dirname(self.socket), os.O_PATH)
        with contextlib.closing(sockets.socket(sockets.AF_UNIX)) as client:
            client.settimeout(100)
            client.connect(f"/proc/self/fd/{directory}/control.sock")
            os.close(directory)
            sent = (body or "").encode()
            client.sendall(
                f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(sent)}\r\n\r\n".encode()
                + sent
            )
            content = b""
            while piece := client.recv(65536):
                content += piece
        head, _, said = content.partition(b"\r\n\r\n")
        allow = re.search(rb"^Allow: (.*?)\r?$", head, re.MULTILINE)
        return Answer(int(head.split()[1]), json.loads(said), allow[1].decode() if allow else None)


@pytest.fixture(scope="module")
def running():
    if os.geteuid() != 0:
        pytest.skip("needs root: it acts as another user")
    with ground() as base:
        made = Running(base)
        os.mkdir(made.root)
        os.chmod(made.root, 0o1777)
        USER.make(f"{made.root}/mine")
        User(0).make(f"{made.root}/theirs", mode="700")
        made.warden.location("cache", made.root)
        made.warden.policy |= {"max_size": "100MiB", "max_pin": "7d"}
        made.warden.daemon |= {"interval": "1h"}
        with made.warden.service():
            yield made


def test_the_file_has_the_paths_and_methods_of_the_service_and_no_others():
    described = {(each.path, each.method) for each in OPERATIONS}
    assert described == {(path, method) for path, methods in ROUTES.items() for method in methods}


def test_the_file_says_forbidden_of_what_only_root_may_do():
    for each in OPERATIONS:
        if ROUTES[each.path][each.method].root_only:
            assert "403" in each.responses


# What is asked, by whom, and with which answer. Together they have each path and each 2xx, 403 and 404.
ME, ROOT = USER, None
CASES = [
    ("GET", "/status", {}, ROOT, 200),
    ("GET", "/status", {"mine": "true"}, ME, 200),
    ("GET", "/entries", {}, ROOT, 200),
    ("GET", "/entries", {"location": "cache"}, ME, 200),
    ("GET", "/entries", {"location": "nothing"}, ROOT, 404),
    ("GET", "/explain", {"path": "mine"}, ME, 200),
    ("GET", "/explain", {"path": "theirs"}, ROOT, 200),
    ("GET", "/explain", {"path": "theirs"}, ME, 404),
    ("POST", "/pins", {"path": "mine", "for": "1d", "reason": "thesis ü"}, ME, 201),
    ("POST", "/pins", {"path": "mine", "for": "8d"}, ME, 403),
    ("POST", "/pins", {"path": "theirs"}, ME, 404),
    ("GET", "/pins", {}, ROOT, 200),
    ("GET", "/pins", {}, ME, 200),
    ("POST", "/evict", {"path": "mine", "wait": "10s"}, ME, 200),
    ("DELETE", "/pins", {"path": "mine"}, ME, 200),
    ("DELETE", "/pins", {"path": "mine"}, ME, 404),
    ("POST", "/plan", {"location": "cache"}, ME, 200),
    ("POST", "/plan", {"probe": True}, ROOT, 200),
    ("POST", "/plan", {"probe": True}, ME, 403),
    ("POST", "/plan", {"location": "nothing"}, ROOT, 404),
    ("POST", "/pause", {"location": "cache", "for": "1h"}, ROOT, 200),
    ("POST", "/pause", {}, ROOT, 200),
    ("POST", "/pause", {}, ME, 403),
    ("POST", "/pause", {"location": "nothing"}, ROOT, 404),
    ("POST", "/resume", {}, ROOT, 200),
    ("POST", "/resume", {}, ME, 403),
    ("POST", "/resume", {"location": "nothing"}, ROOT, 404),
    ("POST", "/confirm", {"location": "cache", "for": "1m"}, ROOT, 200),
    ("POST", "/confirm", {"location": "cache", "dry_run": True}, ROOT, 200),
    ("POST", "/confirm", {"location": "cache"}, ME, 403),
    ("POST", "/confirm", {"location": "nothing"}, ROOT, 404),
    ("POST", "/flush", {}, ROOT, 200),
    ("POST", "/flush", {}, ME, 403),
    ("POST", "/once", {"location": "cache", "yes": True, "wait": "10s", "free": "1MiB"}, ROOT, 200),
    ("POST", "/once", {}, ME, 403),
    ("POST", "/once", {"location": "nothing"}, ROOT, 404),
    ("POST", "/evict", {"path": "theirs"}, ME, 404),
    ("POST", "/evict", {"path": "theirs"}, ROOT, 200),
    ("GET", "/history", {"limit": "5"}, ROOT, 200),
    ("GET", "/history", {"location": "cache"}, ME, 200),
    ("GET", "/history", {"location": "nothing"}, ROOT, 404),
]


def test_each_answer_has_the_shape_that_the_file_gives_it(running):
    tried = set()
    for method, path, fields, user, expected in CASES:
        (operation,) = [each for each in OPERATIONS if (each.path, each.method) == (path, method)]
        given = {
            name: f"{running.root}/{value}" if name == "path" else value for name, value in fields.items()
        }
        answer = running.ask(method, path, given, user=user)
        assert answer.status == expected, (method, path, fields, answer.document)
        found = list(API.problems(operation.responses[str(expected)], answer.document))
        assert found == [], (method, path, fields)
        tried.add((method, path, str(expected)))
    described = {
        (each.method, each.path, status)
        for each in OPERATIONS
        for status in each.responses
        if status in ("200", "201", "403", "404")
    }
    assert described <= tried


WRONG = {
    "string": [7, True, None, {}, []],
    "boolean": ["yes", 1, {}],
    "integer": ["-1", "1e3", "0", "\u0661", "9" * 40],
    "path": ["", "relative", "/a/../b", "/a/./b", "//a", "/a/", "/a\\n\0", "\0", "/" + "\ud800", ".."],
}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_what_the_file_does_not_describe_is_refused_field_by_field(running, operation):
    good = {"path": f"{running.root}/theirs", "location": "cache"}
    given = {name: good[name] for name in operation.required}
    wrong = [given | {"unknown": "x"}]
    wrong += [{name: value for name, value in given.items() if name != gone} for gone in operation.required]
    for name, schema in operation.fields.items():
        kind = schema["type"] if isinstance(schema["type"], str) else "string"
        values = WRONG["path"] if name == "path" else WRONG[kind]
        if operation.has_body:
            values = values + (WRONG["string"] if kind == "string" else [])
            values = [value for value in values if not (value == 7 and name == "free")]
            values += [0] if name in ("for", "wait") else []  # a duration has a unit
        else:
            values = [value for value in values if isinstance(value, str) and value.isprintable()]
            values = [value for value in values if value or name == "path"]
            values = [value for value in values if "\ud800" not in value]
        wrong += [given | {name: value} for value in values]
    for fields in wrong:
        answer = running.ask(operation.method, operation.path, fields)
        assert answer.status == 400, (fields, answer.document)
        assert list(API.problems(operation.responses["400"], answer.document)) == []


@pytest.mark.parametrize("path", ["/etc/passwd", "/", "/proc/self/root", "/nowhere"])
def test_a_path_outside_of_all_locations_is_not_there_for_root_either(running, path):
    for method, route in (("GET", "/explain"), ("POST", "/pins"), ("POST", "/evict")):
        for user in (None, USER):
            assert running.ask(method, route, {"path": path}, user=user).status == 404


def test_a_name_that_only_begins_like_a_location_is_outside(running):
    assert running.ask("GET", "/explain", {"path": running.root + "2/x"}).status == 404


def test_a_method_that_a_path_has_not_is_refused_with_those_that_it_has(running):
    for path, methods in ROUTES.items():
        answer = running.raw("PATCH", BASE + path, None)
        assert answer.status == 405
        assert answer.allow == ", ".join(sorted(methods))


def test_other_paths_and_methods_are_refused_with_the_same_shape_of_error(running):
    error = API.document["components"]["schemas"]["Error"]
    for method, target, expected in (
        ("GET", "/", 404),
        ("GET", "/metrics", 404),
        ("GET", "/api/v1", 404),
        ("GET", "/api/v2/status", 404),
        ("GET", "/api/v1/status/", 404),
        ("GET", "/status", 404),
        ("POST", "/api/v1/status", 405),
        ("PUT", "/api/v1/pins", 405),
        ("GET", "/api/v1/../v1/status", 404),
    ):
        answer = running.raw(method, target, None)
        assert answer.status == expected, target
        assert list(API.problems(error, answer.document)) == []


def test_a_body_where_a_query_belongs_and_the_other_way_round_are_refused(running):
    assert running.raw("GET", BASE + "/explain", '{"path": "/x"}').status == 400
    assert running.raw("POST", BASE + "/evict?path=" + quote(running.root), None).status == 400
    assert running.raw("POST", BASE + "/plan", "[]").status == 400


def test_a_reason_that_a_terminal_would_obey_is_refused(running):
    for reason in ("\x1b[2J", "two\nlines", "x" * 501, "\u202e"):
        answer = running.ask("POST", "/pins", {"path": f"{running.root}/x", "reason": reason})
        assert answer.status == 400
