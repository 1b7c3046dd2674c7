"""Layouts: how a location divides into entries. `split` is the face; one module or package for each.

A new layout is one more file with a class that satisfies `Layout`, one more line in `LAYOUTS`, and a
fixture of the same name for the contract suite in the tests; `make docs` writes its rows into
docs/layouts.md.
"""

from dataclasses import replace
from functools import partial

from cachewarden.errors import LayoutError
from cachewarden.inventory import Claim, Foreign, Split
from cachewarden.layouts.accelerate import Accelerate
from cachewarden.layouts.accelerate.lost import keep_for
from cachewarden.layouts.base import ASIDE, TRASH, Context, Kind, Layout, LayoutTree, read_names
from cachewarden.layouts.compilers import COMPILERS
from cachewarden.layouts.datasets import DatasetsLayout
from cachewarden.layouts.home import HomeLayout
from cachewarden.layouts.hub import HubLayout
from cachewarden.layouts.local_dir import LocalDirLayout
from cachewarden.layouts.modules import ModulesLayout
from cachewarden.layouts.plain import Plain
from cachewarden.layouts.stores import STORES
from cachewarden.layouts.xet import XetLayout
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

__all__ = ["ASIDE", "AUTO", "LAYOUTS", "TRASH", "Context", "Kind", "Layout", "layout_names", "split"]

AUTO = "auto"


def _recognised(tree: Tree, at: bytes) -> Layout | None:
    """The layout that knows the directory `at` for certain; the two that take anything are not asked."""
    if read_names(tree, at) is None:
        return None
    known = (each for each in LAYOUTS if each.name not in FALLBACKS)
    if isinstance(tree, LayoutTree):
        return tree.first_of(known, at)
    return next((each for each in known if each.recognises(tree, at)), None)


# In the order in which `auto` asks them; the last one recognises everything. What is told by a marker
# comes before what is told by a habit of naming.
LAYOUTS: tuple[Layout, ...] = (
    HomeLayout(),
    HubLayout(),
    DatasetsLayout(),
    XetLayout(),
    ModulesLayout(),
    LocalDirLayout(),
    *COMPILERS,
    *STORES,
    Accelerate(lambda tree, at: _recognised(tree, at) is not None),
    Plain(),
)

# What they do not know is an entry or stays, so that they need no shape to be configured by name, and
# are no answer to what some directory inside a container is.
FALLBACKS = frozenset({Accelerate.name, Plain.name})


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
    context = _with_nesting(context)
    chosen = next(
        each for each in LAYOUTS if layout == each.name or (layout == AUTO and each.recognises(tree, b""))
    )
    if layout == AUTO or chosen.name in FALLBACKS or chosen.recognises(tree, b""):
        found = _divided(chosen, tree, b"", context)
        known = _recognised(tree, b"") if layout == Plain.name else None
        if known is not None:
            reason = "parts that need each other go one by one"
            warning = f'layout = "plain" over a cache of the kind {known.name}: {reason}'
            return replace(found, warnings=(*found.warnings, warning))
        return found
    names = tree.listing()
    warnings = (
        (f'layout = "{layout}", but its shape is another one: nothing in it is touched',) if names else ()
    )
    return Split(layout, foreign=tuple(Foreign(name) for name in names), warnings=warnings)


def _with_nesting(context: Context) -> Context:
    def nested(tree: Tree, at: bytes) -> Split | None:
        layout = _recognised(tree, at)
        return None if layout is None else _divided(layout, tree, at, inner)

    inner = replace(context, nested=nested)
    return inner


def _divided(layout: Layout, tree: Tree, at: bytes, context: Context) -> Split:
    """What a layout makes of a directory, less what would take along what cannot be made again.

    Somebody trains into the directory that he gave to a compiler, and what can be computed again goes first.
    """
    found = layout.split(tree, at, context)
    if layout.name in FALLBACKS:
        return found
    return replace(found, claims=tuple(_guarded(tree, claim) for claim in found.claims))


def _guarded(tree: Tree, claim: Claim) -> Claim:
    if claim.keep is not None or claim.cost.rank > Cost.REBUILD.rank:
        return claim
    reasons = (tree.part("lost", path, partial(keep_for, tree, path)) for path in claim.paths)
    return replace(claim, keep=next((reason for reason in reasons if reason is not None), None))
