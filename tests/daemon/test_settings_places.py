"""Directories that nobody means when he configures a cache."""

import pytest

from cachewarden.settings.cron import parse_cron
from cachewarden.settings.fields import parse_http
from cachewarden.settings.patterns import matches, overlap, parse_pattern
from cachewarden.settings.places import unfit

HOMES = frozenset({b"/home/alice", b"/root", b"/usr/share/ollama", b"/usr/sbin", b"/var/lib/svc"})


@pytest.mark.parametrize(
    "path",
    [
        b"/",
        b"/home",
        b"/home/alice",
        b"/root",
        b"/var",
        b"/var/lib",
        b"/var/cache",
        b"/tmp",
        b"/var/tmp",
        b"/opt",
        b"/srv",
        b"/mnt",
        b"/media",
        b"/run",
        b"/etc",
        b"/etc/ssl/x",
        b"/usr",
        b"/usr/lib/x",
        b"/usr/sbin/x",
        b"/boot/x",
        b"/proc/1",
        b"/sys/fs",
        b"/dev/shm",
        b"/lib/x",
        b"/lib64",
        b"/bin",
        b"/sbin",
        b"/usr/share/ollama",
        b"/var/lib/svc",
    ],
)
def test_a_place_of_the_system_or_a_home_is_no_location(path: bytes) -> None:
    assert unfit(path, HOMES)


@pytest.mark.parametrize(
    "path",
    [
        b"/home/alice/.accelerate",
        b"/root/.cache",
        b"/srv/cache",
        b"/var/cache/hub",
        b"/var/lib/ollama",
        b"/tmp/x",
        b"/opt/cache",
        b"/mnt/big",
        b"/data",
        b"/usr/share/ollama/.ollama/models",
        b"/var/lib/svc/c",
        b"/etcetera",
    ],
)
def test_a_cache_below_one_is_a_location(path: bytes) -> None:
    assert unfit(path, HOMES) is None


def test_what_holds_a_home_is_no_location() -> None:
    assert unfit(b"/var/lib", frozenset()) == "is a system directory"
    assert unfit(b"/data", frozenset({b"/data/home/bob"})) == "contains the home directory /data/home/bob"
    assert unfit(b"/data/home-x", frozenset({b"/data/home"})) is None


@pytest.mark.parametrize(
    ("one", "other", "how"),
    [
        (b"/a", b"/a", "is the same as /a"),
        (b"/a/b", b"/a", "lies inside /a"),
        (b"/a", b"/a/b", "contains /a/b"),
        (b"/a", b"/ab", None),
        (b"/a/b", b"/a/c", None),
    ],
)
def test_overlap_is_a_matter_of_whole_components(one: bytes, other: bytes, how: str | None) -> None:
    assert overlap(one, other) == how


def test_a_pattern_is_normalised() -> None:
    assert parse_pattern("//a//b/./c/", None) == b"/a/b/c"
    assert parse_pattern("~/x", b"/home/alice") == b"/home/alice/x"
    assert parse_pattern("/a\\xff", None) == b"/a\xff"


def test_a_glob_matches_as_in_a_shell() -> None:
    assert matches(b".x", b".*")
    assert not matches(b".x", b"*")
    assert not matches(b"X", b"x")
    assert matches(b"\xff", b"?")
    assert matches("é".encode(), "[é]".encode())
    assert not matches(b"a\n", b"a")


@pytest.mark.parametrize(
    "text",
    [
        "* * * * *",
        "0 3 1 jan sun",
        "*/5 1-3,7 * * 1-5/2",
        "59 23 31 12 7",
        "0  0 * * MON",
        "0 0 * * fri-mon",
        "0 0 29 2 *",
        "0 0 31 2 1",
    ],
)
def test_cron_text_is_taken(text: str) -> None:
    assert parse_cron(text) == " ".join(text.lower().split())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "a * * * *",
        "* * * foo *",
        "1, * * * *",
        "@daily",
        "-1 * * * *",
        "*/60 * * * *",
        "0 0 31 2,4 *",
        "٣ * * * *",
    ],
)
def test_other_cron_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be cron text|is no |never comes"):
        parse_cron(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9843", ("127.0.0.1", 9843)),
        ("[::1]:0", ("::1", 0)),
        (":9843", ("", 9843)),
        ("host.example:80", ("host.example", 80)),
        ("", None),
        (None, None),
    ],
)
def test_an_address_is_host_and_port(text: str | None, address: tuple[str, int] | None) -> None:
    assert parse_http(text) == address


@pytest.mark.parametrize("text", ["127.0.0.1", "::1:80", "host:65536", "host:", "host:http", "a b:1", 9843])
def test_anything_else_is_no_address(text: object) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        parse_http(text)
