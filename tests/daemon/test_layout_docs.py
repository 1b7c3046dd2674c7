"""The reference table of layouts says what the code does."""

from pathlib import Path

import pytest

from cachewarden.layouts import LAYOUTS

PAGE = Path(__file__).parents[2] / "docs" / "layouts.md"


def rows(first_column: str) -> list[list[str]]:
    """Cells of the table on the page whose second heading is `first_column`."""
    table: list[list[str]] = []
    inside = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| layout") and cells[1] == first_column:
            inside = True
        elif inside and not line.startswith("|"):
            break
        elif inside and not line.startswith("|---"):
            table.append(cells)
    return table


def test_layouts_stand_in_the_order_in_which_they_are_asked():
    """Which one `auto` takes depends on it."""
    assert [row[0].strip("`") for row in rows("recognised by")] == [layout.name for layout in LAYOUTS]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_what_is_never_touched_is_told_in_the_layouts_own_words(layout):
    """One text, in two places."""
    (row,) = [row for row in rows("recognised by") if row[0] == f"`{layout.name}`"]
    assert row[4] == layout.never


def test_every_kind_is_listed_with_its_cost():
    """And no kind that does not exist."""
    listed = [tuple(cell.strip("`") for cell in row[:3]) for row in rows("kind")]
    assert listed == [
        (layout.name, kind, str(cost)) for layout in LAYOUTS for kind, cost in layout.kinds.items()
    ]
