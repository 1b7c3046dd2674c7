"""The reference page of layouts says what the code does."""

from pathlib import Path

import pytest

from cachewarden.layouts import LAYOUTS
from cachewarden.layouts.reference import with_tables

PAGE = Path(__file__).parents[2] / "docs" / "layouts.md"


def test_the_tables_are_the_layouts_own_words():
    """`make docs` writes them; this fails when somebody forgot."""
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page


def test_a_page_without_marks_is_an_error():
    """Nothing is appended where nobody reads it."""
    with pytest.raises(ValueError, match="<!-- layouts -->"):
        with_tables("# Layouts\n")


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_every_layout_says_all_about_itself_in_one_table_cell(layout):
    """An empty cell, or one that breaks the table, would be no reference."""
    texts = [layout.name, layout.shape, layout.unit, layout.locks, layout.never, layout.checked]
    texts += [kind.what for kind in layout.kinds.values()]
    for text in texts:
        assert text
        assert "\n" not in text
        assert "|" not in text
