"""Patterns of protect and exclude: gitignore's language without negation, on names as bytes."""

import pytest

from cachewarden_policies.globs import compile_globs

MATCHES = [
    ("golden", b"golden", "a name"),
    ("golden", b"a/b/golden", "a pattern without a slash matches at any depth"),
    ("golden", b"golden/v1", "what is in a directory that matches"),
    ("golden", b"a/golden/v1", "what is in a directory that matches, further down"),
    ("models--org--name", b"models--org--name@0a1b", "every entry of a directory that several share"),
    ("/golden", b"golden", "a leading slash anchors"),
    ("golden/", b"golden", "a trailing slash is for the reader"),
    ("**/golden-*", b"golden-1", "a leading ** matches no directory, too"),
    ("**/golden-*", b"a/b/golden-1", "a leading ** matches several directories"),
    ("a/**/z", b"a/z", "** in the middle matches no directory"),
    ("a/**/z", b"a/b/c/z", "** in the middle matches several directories"),
    ("a/**", b"a/b/c", "a trailing ** matches everything below"),
    ("a/*", b"a/b", "* matches within one level"),
    ("a/*", b"a/b/c", "what is in a directory that * matches"),
    ("checkpoint-?", b"checkpoint-7", "? is one byte"),
    ("v[0-9]", b"v3", "a range"),
    ("v[!0-9]", b"vx", "a negated range"),
    ("v[^0-9]", b"vx", "a negated range, the other spelling"),
    ("[]]", b"]", "a bracket that comes first is a member"),
    ("a[", b"a[", "an open bracket without an end is itself"),
    (r"\*", b"*", "a backslash takes the next character as it is"),
    ("a\\", b"a\\", "a backslash at the end is itself"),
    ("\udcff*", b"\xffabc", "bytes that are not UTF-8"),
    ("a\nb", b"a\nb", "a newline is a character like any other"),
    ("*", b"a\nb", "* matches a newline"),
    ("a.c", b"a.c", "a dot is a dot"),
]

MISSES = [
    ("golden", b"golden-1", "half a name"),
    ("golden", b"ungolden", "the end of a name"),
    ("/golden", b"a/golden", "an anchored pattern further down"),
    ("a/b", b"x/a/b", "a pattern with a slash matches from the top only"),
    ("a/*/z", b"a/b/c/z", "* does not cross a slash"),
    ("a/**", b"a", "a trailing ** is about what is below"),
    ("a**z", b"a/z", "** inside a name is a *"),
    ("a?c", b"a/c", "? does not match a slash"),
    ("a[!b]c", b"a/c", "a negated range does not match a slash"),
    ("v[9-0]", b"v5", "a range that runs backwards is empty"),
    ("a.c", b"abc", "a dot is not a wildcard"),
    (r"\*", b"x", "an escaped star"),
]


@pytest.mark.parametrize(("pattern", "name", "why"), MATCHES, ids=[why for *_, why in MATCHES])
def test_matches(pattern, name, why):
    assert compile_globs([pattern]).matches(name), why


@pytest.mark.parametrize(("pattern", "name", "why"), MISSES, ids=[why for *_, why in MISSES])
def test_does_not_match(pattern, name, why):
    assert not compile_globs([pattern]).matches(name), why


def test_any_of_several_patterns_matches():
    globs = compile_globs(["a", "/b/c", "**/d"])
    assert [globs.matches(name) for name in (b"a", b"b/c", b"x/d", b"x/b/c")] == [True, True, True, False]


def test_no_pattern_matches_nothing():
    assert not compile_globs([]).matches(b"a")


@pytest.mark.parametrize("pattern", ["", "/", "//"])
def test_a_pattern_that_can_match_nothing_is_an_error(pattern):
    with pytest.raises(ValueError, match="matches nothing"):
        compile_globs(["a", pattern])
