"""Schemathesis asks the running service what the OpenAPI file allows, and what it forbids, as two users."""

import json
import os
import subprocess
import sys

import pytest
from tests.system.bridge import bridged
from tests.system.command import Warden
from tests.system.openapi import FILE
from tests.system.users import User, ground

from cachewarden.service.control.desk import BASE, ROUTES

PROGRAM = os.path.join(os.path.dirname(sys.executable), "schemathesis")
# All but one: that each request that the file allows succeeds, no file could say. What is there, and
# whose it is, the machine knows.
CHECKS = ("--checks", "all", "--exclude-checks", "positive_data_acceptance")
BOUNDED = ("--generation-deterministic", "--max-examples", "10", "--no-shrink", "--request-timeout", "60")
USER = User(50001)


@pytest.fixture
def base(needs_root):
    """A directory with a cache of entries of two owners."""
    with ground() as made:
        os.mkdir(f"{made}/root")
        os.chmod(f"{made}/root", 0o1777)
        for name in ("evicted", "kept"):
            USER.make(f"{made}/root/mine-{name}")
            User(0).make(f"{made}/root/theirs-{name}", mode="700")
        yield made


@pytest.fixture
def warden(base):
    """The command with a location over that cache, in which nothing goes by itself."""
    made = Warden(f"{base}/warden")
    made.location("cache", f"{base}/root")
    made.policy |= {"max_size": "100MiB", "max_pin": "7d"}
    made.daemon |= {"interval": "1h"}
    return made


def with_examples(base):
    """A copy of the file with a location and paths that are there: they are tried besides what is made up."""
    with open(FILE, encoding="utf-8") as given:
        document = json.load(given)
    for path, methods in document["paths"].items():
        fate = "evicted" if path == "/evict" else "kept"
        examples = {
            "path": [f"{base}/root/{name}" for name in (f"mine-{fate}", f"theirs-{fate}", "gone")],
            "location": ["cache"],
            "wait": ["10s"],
            "for": ["1h"],
        }
        for operation in methods.values():
            fields = {each["name"]: each["schema"] for each in operation.get("parameters", ())}
            if "requestBody" in operation:
                fields = operation["requestBody"]["content"]["application/json"]["schema"]["properties"]
            for name in fields.keys() & examples.keys():
                fields[name]["examples"] = examples[name]
    with open(f"{base}/openapi.json", "w", encoding="utf-8") as made:
        json.dump(document, made)
    return made.name


def answered(report):
    """What each operation was answered: statuses by (path, method)."""
    found = {}
    with open(report, encoding="utf-8") as given:
        for each in json.load(given)["log"]["entries"]:
            path = each["request"]["url"].partition(BASE)[2].partition("?")[0]
            found.setdefault((path, each["request"]["method"]), set()).add(each["response"]["status"])
    return found


@pytest.mark.parametrize("user", [User(0), USER], ids=["root", "user"])
def test_the_service_answers_as_the_file_says_and_refuses_what_it_forbids(warden, base, tmp_path, user):
    report = str(tmp_path / "report.har")
    with (
        warden.service() as service,
        bridged(f"{warden.runtime_dir}/control.sock", user) as address,
    ):
        where = (with_examples(base), "--url", f"http://{address}{BASE}", "--report-har-path", report)
        done = subprocess.run(
            [PROGRAM, "run", *where, *CHECKS, *BOUNDED, "--warnings", "off", "--no-color"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr
        assert "level=error" not in service.log
    statuses = answered(report)
    for path, methods in ROUTES.items():
        for method, route in methods.items():
            allowed = user.uid == 0 or not route.root_only
            assert bool(statuses[path, method] & {200, 201}) == allowed, (method, path)
