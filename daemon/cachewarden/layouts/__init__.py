"""Layouts: how a location divides into entries. `split` is the face; one module or package for each.

A new layout is one more file with a class that satisfies `Layout`, one more member of `LAYOUTS`, and
a row of docs/layouts.md; the contract suite in the tests then runs over it.
"""

from dataclasses import replace

from cachewarden.errors import LayoutError
from cachewarden.inventory import Foreign, Split
from cachewarden.layouts.accelerate import Accelerate
from cachewarden.layouts.base import ASIDE, TRASH, Context, Layout, LayoutTree
from cachewarden.layouts.hub import HubLayout
from cachewarden.layouts.plain import Plain
from cachewarden.tree import Tree

__all__ = ["ASIDE", "AUTO", "LAYOUTS", "TRASH", "Context", "Layout", "layout_names", "split"]

AUTO = "auto"

# In the order in which `auto` asks them; the last one recognises everything.
LAYOUTS: tuple[Layout, ...] = (HubLayout(), Accelerate(), Plain())

# What they do not know is an entry or stays, so that they need no shape to be configured by name.
_FOR_ANYTHING = frozenset({Accelerate.name, Plain.name})


def layout_names() -> tuple[str, ...]:
    """What a configuration may name as a layout."""
    return (AUTO, *(layout.name for layout in LAYOUTS))


def split(tree: Tree, layout: str, context: Context) -> Split:
    """Divide the location behind `tree` by the layout of this name, or by the first that recognises it.

    A location that is not empty and does not have the shape of the layout that was configured is
    all foreign, with a warning: to guess would be to delete. `accelerate` and `plain` fit everything:
    what they do not know is an entry. Raises LayoutError for an unknown name.
    """
    if layout not in layout_names():
        raise LayoutError(f"unknown layout {layout!r}; there are {', '.join(layout_names())}")
    tree = LayoutTree(tree)
    chosen = next(
        each for each in LAYOUTS if layout == each.name or (layout == AUTO and each.recognises(tree, b""))
    )
    if layout == AUTO or chosen.name in _FOR_ANYTHING or chosen.recognises(tree, b""):
        found = chosen.split(tree, b"", context)
        if layout == Plain.name and HubLayout().recognises(tree, b""):
            warning = 'layout = "plain" over a hub cache: parts that need each other go one by one'
            return replace(found, warnings=(*found.warnings, warning))
        return found
    names = tree.listing()
    warnings = (
        (f'layout = "{layout}", but its shape is another one: nothing in it is touched',) if names else ()
    )
    return Split(layout, foreign=tuple(Foreign(name) for name in names), warnings=warnings)
