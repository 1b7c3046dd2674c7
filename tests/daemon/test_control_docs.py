"""The page about the control socket has all that can be asked."""

import re
from pathlib import Path

from cachewarden.service.control.desk import BASE, ROUTES

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"


def test_each_request_is_in_the_table_and_no_other_is():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `([A-Z]+) (/[a-z]+)` \|", text, re.MULTILINE))
    assert described == {(method, path) for path, methods in ROUTES.items() for method in methods}
    assert f"`{BASE}`" in text


def test_each_example_asks_for_something_that_there_is():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    asked = re.findall(r"curl --unix-socket \$SOCKET[^\n]*\$API(/[a-z]+)", text)
    assert len(asked) >= 7
    assert set(asked) <= set(ROUTES)
