"""One key of a file that people wrote is set, and every other byte stays."""

import tomllib

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cachewarden.settings.editing import with_flag

KEY = ("locations", "hub", "enforce")
LIKE_IT = 'a = """\n[locations.hub]\nenforce = false\n"""\n# enforce = false\n'
KEEP = "[locations.hub.evict_checkpoints]\nkeep_newest = 1\n"
TABLE = "[locations.hub]\nenforce = false\n"
FORMS = {
    "a table": '[locations.hub]\npath = "/x"\nenforce = false\n',
    "a table among others": f'[locations.a]\npath = "/a"\nenforce = false\n[daemon]\n{TABLE}',
    "dotted keys": '[locations]\nhub.path = "/x"\nb.path = "/y"\nhub.enforce = false # why\n',
    "dotted keys without a header": 'locations.hub.path = "/x"\nlocations.hub.enforce=false\n',
    "an inline table": '[locations]\nhub = { path = "/x", enforce = false }   # why\n',
    "inline tables all the way": 'locations = {b={path="/y"},hub={enforce=false,path="/x"}}\n',
    "dotted keys in an inline table": 'locations = { hub.path = "/x", hub.enforce = false }\n',
    "quoted keys": "[ \"locations\" . 'hub' ]\n\"enforce\" = false\n'path' = '/x'\n",
    "below its own part": KEEP + TABLE,
    "parts in several places": f"{KEEP}[daemon]\n{TABLE}",
    "tabs and no last line end": "[locations]\n\t[locations.hub]\n\t\tenforce\t=\tfalse\t#",
    "as a text": "[locations.hub]\nenforce = 'false'\n",
    "unset": '[locations.hub]\npath = "/x"\nenforce = "none" # nothing\n',
    "after what looks like it": LIKE_IT + TABLE,
    "beside an array of tables": f"[[policies.x]]\nenforce = false\n[[policies.x]]\n{TABLE}",
}


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "dos"])
@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_the_value_changes_in_whatever_form_it_is_written(text, end):
    written = text.replace("\n", end)
    edited = with_flag(written, KEY, True, "path")
    assert tomllib.loads(edited) == _with(written, True)
    old, new = written.split("\n"), edited.split("\n")
    assert len(old) == len(new)
    ((before, after),) = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    assert after in [before.replace(was, "true") for was in ("false", "'false'", '"none"')]


ADDED = {
    "a table": ('[locations.hub]\npath = "/x"\n', '[locations.hub]\npath = "/x"\nenforce = false\n'),
    "above a comment about the next table": (
        '[locations.hub]\npath = "/x" # here\n\n# About b.\n[locations.b]\npath = "/b"\n',
        '[locations.hub]\npath = "/x" # here\nenforce = false\n\n# About b.\n[locations.b]\npath = "/b"\n',
    ),
    "after a list of several lines": (
        '[locations.hub]\npath = [ # two\n  "/x",\n  "/y",\n]\n\n[daemon]\n',
        '[locations.hub]\npath = [ # two\n  "/x",\n  "/y",\n]\nenforce = false\n\n[daemon]\n',
    ),
    "above its own part": (
        f'[locations.hub]\npath = "/x"\n\n{KEEP}',
        f'[locations.hub]\npath = "/x"\nenforce = false\n\n{KEEP}',
    ),
    "indented": (
        '[locations]\n  [locations.hub]\n    path = "/x"\n',
        '[locations]\n  [locations.hub]\n    path = "/x"\n    enforce = false\n',
    ),
    "dotted keys": (
        '[locations]\nhub.path = "/x"\nb.path = "/y"\n',
        '[locations]\nhub.path = "/x"\nhub.enforce = false\nb.path = "/y"\n',
    ),
    "no last line end": ('[locations.hub]\npath = "/x"', '[locations.hub]\npath = "/x"\nenforce = false\n'),
    "line ends of DOS": (
        '[locations.hub]\r\npath = "/x"\r\n[daemon]\r\n',
        '[locations.hub]\r\npath = "/x"\r\nenforce = false\r\n[daemon]\r\n',
    ),
}


@pytest.mark.parametrize(("text", "edited"), ADDED.values(), ids=ADDED)
def test_a_key_that_is_missing_comes_after_the_last_one_of_its_table(text, edited):
    assert with_flag(text, KEY, False, "path") == edited


def test_an_inline_table_gets_the_key_and_keeps_its_comment():
    edited = with_flag('[locations]\nhub = { path = "/x" } # why\n', KEY, False, "path")
    assert tomllib.loads(edited) == {"locations": {"hub": {"path": "/x", "enforce": False}}}
    assert edited.endswith(" # why\n")


def test_a_file_without_the_table_is_refused():
    with pytest.raises(ValueError, match="has no table"):
        with_flag('[locations.b]\npath = "/b"\n', KEY, False, "path")


def test_a_value_over_several_lines_is_left_to_people():
    """Whoever wrote it so meant something by it."""
    with pytest.raises(ValueError, match="without changing more"):
        with_flag('[locations.hub]\nenforce = """\nfalse\n"""\n', KEY, True, "path")


def _lines(text: str) -> list[str]:
    """Without the end of the last line, which an added one may need."""
    return [each.removesuffix("\r") for each in text.removesuffix("\n").split("\n")]


def _with(text: str, value: bool) -> dict:
    tree = tomllib.loads(text)
    tree["locations"]["hub"]["enforce"] = value
    return tree


# What a file may hold beside the key, much of which looks like the key.
_NOISE = st.sampled_from(
    ["", "  ", "# enforce = false", "\t# [locations.hub]", "#", "# ünïcode ✓", "# tab\tin it"]
)
_VALUES = st.sampled_from(
    [
        "1",
        "-0.5e3",
        '"enforce = false"',
        "'[locations.hub]'",
        "true",
        "1979-05-27T07:32:00Z",
        "[ 1, [2], # x\n 3,\n]",
        '"""\n[locations.hub]\nenforce = false\n"""',
        "'''a\\\n# b'''",
        "{ a = 1, b.c = [{}] }",
        '{ enforce = false, "x y" = { enforce = true } }',
        '"\\u00e4\\" # \\\\"',
    ]
)
_KEYS = st.sampled_from(["k", "k2", '"q k"', "'l.k'", "d.e", "d.f", "Enforce", "path2"])
_SPACES = st.sampled_from(["", " ", "  ", "\t"])


@st.composite
def _pairs(draw: st.DrawFn, prefix: str = "") -> list[str]:
    """Lines of a table: keys with values, comments, empty lines."""
    lines = []
    for key in draw(st.lists(_KEYS, max_size=4, unique=True)):
        lines += draw(st.lists(_NOISE, max_size=2))
        before, around = draw(_SPACES), draw(_SPACES)
        lines.append(f"{before}{prefix}{key}{around}={around}{draw(_VALUES)}{draw(_SPACES)}")
    return lines + draw(st.lists(_NOISE, max_size=2))


@st.composite
def _location(draw: st.DrawFn, name: str, value: str | None) -> list[str]:
    """One location, in one of the forms that TOML has."""
    own = ['path = "/x"', *([f"enforce = {value}"] if value else [])]
    own = draw(st.permutations(own))
    form = draw(st.sampled_from(["table", "quoted", "inline", "dotted", "deep"]))
    if form == "inline":
        return ["[locations]", *draw(_pairs()), f"{name} = {{ {', '.join(own)} }}", *draw(_pairs("z."))]
    if form == "dotted":
        lines = ["[locations]", *draw(_pairs())]
        for pair in own:
            lines += [f"{name}.{pair}{draw(_SPACES)}# c", *draw(st.lists(_NOISE, max_size=1))]
        return [*lines, *draw(_pairs(f"{name}."))]
    head = {
        "table": f"[locations.{name}]",
        "quoted": f'[ locations . "{name}" ] # h',
        "deep": f"[locations.{name}]",
    }
    lines = [head[form], *draw(_pairs())]
    for pair in own:
        lines += [draw(_SPACES) + pair + draw(_SPACES), *draw(st.lists(_NOISE, max_size=1))]
    lines += draw(_pairs("z."))
    return [*lines, f"[locations.{name}.evict_checkpoints]", "keep_newest = 1"] if form == "deep" else lines


@st.composite
def documents(draw: st.DrawFn, value: str | None) -> str:
    """A whole file with the location `hub` in it."""
    parts = [
        draw(_location("hub", value)),
        *draw(
            st.lists(st.one_of(_location("b", "false"), _table("daemon"), _table("policies.p")), max_size=3)
        ),
    ]
    lines = draw(_pairs()) + [each for part in draw(st.permutations(parts)) for each in part]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = "\n".join(lines).replace("\n", end) + draw(st.sampled_from(["", end, end * 3]))
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    assume("hub" in found.get("locations", {}))
    return text


@st.composite
def _table(draw: st.DrawFn, name: str) -> list[str]:
    return [f"[{name}]", *draw(_pairs())]


@given(documents("false"))
@example('[locations]\nhub = { path = "/x", enforce = false }\nhub2.enforce = false\n')
def test_in_any_file_only_that_value_changes(text):
    edited = with_flag(text, KEY, True, "path")
    assert tomllib.loads(edited) == _with(text, True)
    assert any(
        edited == text[:at] + "true" + text[at + len("false") :]
        for at in range(len(text))
        if text.startswith("false", at)
    )


@given(documents(None))
def test_in_any_file_only_one_key_is_added(text):
    edited = with_flag(text, KEY, False, "path")
    assert tomllib.loads(edited) == _with(text, False)
    old, new = _lines(text), _lines(edited)
    if len(new) == len(old):  # an inline table
        assert sum(a != b for a, b in zip(old, new, strict=True)) == 1
    else:
        assert any(new[:at] + new[at + 1 :] == old for at in range(len(new)))
    ends = {each[len(each.rstrip("\r\n")) :] for each in edited.splitlines(keepends=True)} - {""}
    assert ends <= {each[len(each.rstrip("\r\n")) :] for each in text.splitlines(keepends=True)} | {"\n"}


@given(documents("true"))
def test_setting_what_is_set_changes_nothing(text):
    assert with_flag(text, KEY, True, "path") == text
