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
    found = next(each for each in LAYOUTS if each.recognises(tree, b""))
    if layout in (AUTO, found.name):
        return found.split(tree, b"", context)
    wanted = next(each for each in LAYOUTS if each.name == layout)
    if layout == Accelerate.name:
        return wanted.split(tree, b"", context)
    if layout == Plain.name:
        warning = f'layout = "plain" protects nothing that the layout {found.name} would: it has that shape'
        return replace(wanted.split(tree, b"", context), warnings=(warning,))
    names = tree.listing()
    if not names:
        return Split(layout)
    foreign = tuple(Foreign(name) for name in names)
    shape = f"its shape is that of {found.name}"
    warning = f'layout = "{layout}" does not fit, {shape}: nothing in it is touched'
    return Split(layout, foreign=foreign, warnings=(warning,))
