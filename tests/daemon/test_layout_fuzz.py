"""Trees that no tool makes: parts of all caches in places where they do not belong."""

import importlib
import os
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.daemon.layout_trees import divide, everything

from cachewarden.layouts import AUTO
from cachewarden.layouts.compilers import COMPILERS

FIXTURES = [importlib.import_module(f"tests.daemon.layout_fixtures.{each.name}") for each in COMPILERS]


def vocabulary() -> list[bytes]:
    """Every name in every fixture."""
    names: set[bytes] = set()
    with tempfile.TemporaryDirectory() as base:
        for module in FIXTURES:
            root = os.fsencode(base) + b"/" + module.__name__.encode()
            module.build(root)
            for _, below, files in os.walk(root):
                names.update(below, files)
    return sorted(names)


WORDS = st.sampled_from(vocabulary())
PARTS = st.lists(
    st.tuples(st.lists(WORDS, min_size=1, max_size=5).map(b"/".join), st.sampled_from("fdl")), max_size=12
)
TEXTS = st.sampled_from([b"", b"{}", b'{"triton_version": "3.9.0"}', b"\xff" * 9, b"[" * 5000])


def grow(root: bytes, parts: list[tuple[bytes, str]], text: bytes) -> None:
    """Files, directories and links; what does not fit is left out."""
    for path, kind in parts:
        full = root + b"/" + path
        try:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            if kind == "d":
                os.makedirs(full, exist_ok=True)
            elif kind == "l":
                os.symlink(b"../../../etc", full)
            elif not os.path.lexists(full):
                with open(full, "wb") as file:
                    file.write(text)
        except OSError:
            continue


@pytest.mark.parametrize("layout", [AUTO, "accelerate", *(each.name for each in COMPILERS)])
@settings(max_examples=settings.default.max_examples // 2)  # for each of many layouts
@given(parts=PARTS, text=TEXTS)
def test_any_tree_is_divided_into_what_is_there_and_nothing_else(layout, parts, text):
    """No crash, no path that leads out, no two entries with the same name or data, nothing forgotten."""
    with tempfile.TemporaryDirectory() as base:
        root = os.fsencode(base)
        grow(root, parts, text)
        found = divide(root, layout)
        paths = [path for claim in found.claims for path in claim.paths]
        assert len(set(paths)) == len(paths)
        assert len({claim.name for claim in found.claims}) == len(found.claims)
        for path in (*paths, *(lock for claim in found.claims for lock in claim.locks)):
            assert os.path.lexists(root + b"/" + path)
            assert not {b"..", b"", b"."} & set(path.split(b"/"))
            assert os.path.realpath(os.path.dirname(root + b"/" + path)).startswith(os.path.realpath(root))
        owned = (*paths, *(each.path for each in found.foreign))
        for path in everything(root):
            if os.path.isfile(root + b"/" + path):
                assert any(path == each or path.startswith(each + b"/") for each in owned), path
