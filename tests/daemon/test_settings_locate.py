"""Each key of a TOML text has its line, however the key is written."""

import tomllib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewarden.settings.layers import toml_text
from cachewarden.settings.locate import Place, locate

TEXT = r'''# comment = 1
top = "a # no comment"  # comment
[daemon]
list = [
  "x", # ]
  { y = 1 },
]
after = 1
'quoted key'."second \u0041" = true
a.b.c = 2

[ policies . "p.q" ]
inline = { max = "1", deep = { deeper = [1, 2] }, last = 3 }
text = """
[not.a.header]
nor = "a key" \
""""
last = @@@'x' = @@@
[[many]]
key = 1
[[many]]
other = 2
'''.replace("@", "'")


def test_every_way_to_write_a_key_is_followed() -> None:
    tomllib.loads(TEXT)  # the sample is valid
    places = {path: place.line for path, place in locate(TEXT).places.items()}
    assert places == {
        ("top",): 2,
        ("daemon",): 3,
        ("daemon", "list"): 4,
        ("daemon", "after"): 8,
        ("daemon", "quoted key"): 9,
        ("daemon", "quoted key", "second A"): 9,
        ("daemon", "a"): 10,
        ("daemon", "a", "b"): 10,
        ("daemon", "a", "b", "c"): 10,
        ("policies",): 12,
        ("policies", "p.q"): 12,
        ("policies", "p.q", "inline"): 13,
        ("policies", "p.q", "inline", "max"): 13,
        ("policies", "p.q", "inline", "deep"): 13,
        ("policies", "p.q", "inline", "deep", "deeper"): 13,
        ("policies", "p.q", "inline", "last"): 13,
        ("policies", "p.q", "text"): 14,
        ("policies", "p.q", "last"): 18,
        ("many", "key"): 20,
        ("many", "other"): 22,
    }


def test_the_value_is_kept_as_it_was_typed() -> None:
    places = locate('a = 1_000.50  # x\nb = [1,\n 2]\nc = nan\nd="x"').places
    assert [places[(key,)].raw for key in "abcd"] == ["1_000.50", "[1,\n 2]", "nan", '"x"']


@pytest.mark.parametrize(
    ("text", "duplicates"),
    [
        ("a = 1\na = 2", [(("a",), Place(2, "2"), 1)]),
        ("[t]\nx = 1\n\n[t]", [(("t",), Place(4), 1)]),
        ("t = { x = 1, x = 2 }", [(("t", "x"), Place(1, "2"), 1)]),
        ("a.b = 1\n\"a\".'b' = 2", [(("a", "b"), Place(2, "2"), 1)]),
        ("[a]\nb = 1\n[a.b]", [(("a", "b"), Place(3), 2)]),
        ("[a.b]\n[a]\nx = 1", []),
        ("[[a]]\nx = 1\n[[b]]\nx = 1", []),
    ],
)
def test_duplicates_are_found_with_both_lines(text: str, duplicates: list[Any]) -> None:
    assert locate(text).duplicates == duplicates


VALUES = st.recursive(
    st.booleans() | st.integers(-(2**31), 2**31) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), VALUES, max_size=5))
def test_what_we_write_is_toml_and_each_key_is_found_on_its_line(tree: dict[str, Any]) -> None:
    text = "".join(f"{toml_text({key: value})[2:-2]}\n" for key, value in tree.items())
    assert tomllib.loads(text) == tree
    located = locate(text)
    assert [located.places[(key,)].line for key in tree] == list(range(1, len(tree) + 1))
    assert located.duplicates == []


@given(st.text(alphabet="ab=.[]{}\"'#\n\\, 1"))
def test_no_text_stops_the_scanner_in_another_way_than_by_an_end(text: str) -> None:
    """Also for broken text, and what it finds in valid text is what is there."""
    located = locate(text)
    with suppress(tomllib.TOMLDecodeError):
        tree = tomllib.loads(text)
        assert located.duplicates == []
        assert {path[0] for path in located.places} <= set(tree)
