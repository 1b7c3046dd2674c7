"""The status page: what it says, and that no name can break out of it."""

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from cachewarden.http import render_page
from cachewarden.metrics import FilesystemFigures, LocationFigures, ServiceFigures, Snapshot, UserFigures
from cachewarden_policies.reasons import Outcome

GIB = 2**30
NOW = 1_700_000_000 * 10**9
SERVICE = ServiceFigures("1.2.3", NOW - 3600 * 10**9)
FULL = LocationFigures(
    "accelerate",
    b"/home/a/.accelerate",
    available=True,
    bytes=150 * GIB,
    limit_bytes=200 * GIB,
    target_bytes=180 * GIB,
    usage_complete=True,
    outcome=Outcome.WITHIN_LIMITS,
    last_pass_ns=NOW - 150 * 10**9,
)


class Reader(HTMLParser):
    """Collects text and tags, and checks that what is opened is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "link", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def read(*locations: LocationFigures, filesystems=(), service=SERVICE) -> Reader:
    reader = Reader(render_page(Snapshot(service, locations, tuple(filesystems)), NOW))
    assert reader.open == []
    return reader


def said(reader: Reader) -> str:
    return re.sub(r"\s+", " ", " ".join(reader.text))


def bars(reader: Reader) -> list[tuple[str, str]]:
    return [
        (a["class"], a["width"]) for tag, a in reader.tags if tag == "rect" and a["class"] in ("bar", "over")
    ]


def test_a_location_is_told_in_words_and_as_a_bar():
    reader = read(FULL)
    text = said(reader)
    for part in (
        "accelerate",
        "/home/a/.accelerate",
        "150 GiB",
        "75 % of 200 GiB",
        "within limits",
        "2 m 30 s ago",
    ):
        assert part in text
    assert bars(reader) == [("bar", "75.0%")]
    assert ("rect", {"class": "mark", "x": "90.0%", "width": "2", "height": "8"}) in reader.tags


@pytest.mark.parametrize("used", [201, 1000, 10**9])
def test_above_the_limit_the_bar_is_full_and_of_another_colour(used):
    assert bars(read(replace(FULL, bytes=used * GIB))) == [("over", "100.0%")]


def test_what_is_unknown_is_said_and_not_drawn():
    reader = read(
        LocationFigures("new", b"/new", available=True),
        LocationFigures("away", b"/away", available=False, outcome=Outcome.TRIMMED),
        LocationFigures("free", b"/free", available=True, bytes=GIB, usage_complete=False),
        LocationFigures("watched", b"/w", available=True, enforcing=False, bytes=0, limit_bytes=0),
    )
    text = said(reader)
    assert "not measured not yet never" in text
    assert "/away not measured unavailable" in text
    assert "at least 1 GiB no size limit" in text
    assert "report only" in text
    assert bars(reader) == []


def test_a_cache_that_is_not_there_is_no_trouble():
    text = said(read(LocationFigures("away", b"/away", available=False, outcome=Outcome.WITHIN_LIMITS)))
    assert "/away not measured within limits" in text
    assert "unavailable" not in text


def test_the_worst_outcome_stands_at_the_top():
    reader = read(FULL, replace(FULL, location="b", outcome=Outcome.SHORT), replace(FULL, location="c"))
    assert said(reader).strip().startswith("cachewarden cachewarden short 3 locations, 450 GiB in all")


def test_an_empty_page_says_so():
    assert "No location is configured" in said(read())


def test_a_refused_reload_is_said():
    refused = replace(SERVICE, config_last_reload_successful=False)
    assert "last reload was refused" in said(read(FULL, service=refused))
    assert "refused" not in said(read(FULL))


def test_filesystems_are_drawn_with_what_must_stay_free():
    low = FilesystemFigures(b"/home", 1000 * GIB, 50 * GIB, 1, 1, 100 * GIB)
    fine = FilesystemFigures(b"/srv", 1000 * GIB, 500 * GIB)
    reader = read(FULL, filesystems=[low, fine, FilesystemFigures(b"/unknown")])
    assert "50 GiB, 100 GiB must stay" in said(reader)
    assert bars(reader)[1:] == [("over", "95.0%"), ("bar", "50.0%")]


@pytest.mark.parametrize(
    "name",
    [
        b"<script>alert(1)</script>",
        b'"><img src=x onerror=alert(1)>',
        b"&lt;b&gt;",
        b"\xff\n\x00",
        "\u202egnp".encode(),
    ],
)
def test_no_name_becomes_markup(name):
    plain = [tag for tag, _ in read(FULL, filesystems=[FilesystemFigures(b"/x", 2, 1)]).tags]
    text = name.decode("utf-8", "surrogateescape")
    reader = read(replace(FULL, location=text, path=name), filesystems=[FilesystemFigures(name, 2, 1)])
    assert [tag for tag, _ in reader.tags] == plain
    assert not {"script", "img"} & set(plain)
    render_page(Snapshot(SERVICE, (replace(FULL, location=text, path=name),)), NOW).encode()


def test_no_user_is_named():
    assert "alice" not in said(read(replace(FULL, users=(UserFigures("alice", 1),))))


def test_a_pass_in_the_future_is_just_now():
    assert "just now" in said(read(replace(FULL, last_pass_ns=NOW + 10**12)))


def test_nothing_needs_what_the_policy_forbids():
    for tag, attributes in read(FULL).tags:
        assert not {name for name in attributes if name == "style" or name.startswith("on")}, tag


def test_a_browser_draws_it_narrow_and_wide(tmp_path):
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed; CI installs it")
    page = tmp_path / "page.html"
    page.write_text(render_page(Snapshot(SERVICE, (FULL,), (FilesystemFigures(b"/", 2, 1),)), NOW))
    # The page in a frame of each width tells how wide it really is.
    frame = tmp_path / "frame.html"
    frame.write_text(
        '<iframe src="page.html" style="width:320px;height:2000px"></iframe>'
        '<iframe src="page.html" style="width:1400px;height:2000px"></iframe>'
        "<script>onload = () => { document.title = [...document.querySelectorAll('iframe')].map("
        "f => f.contentDocument.documentElement.scrollWidth).join(' ') }</script>"
    )
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    flags += ["--no-first-run", "--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}"]
    drawn = subprocess.run(
        [browser, *flags, "--dump-dom", f"file://{frame}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "<title>320 1400</title>" in drawn.stdout
