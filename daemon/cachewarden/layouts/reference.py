"""The tables of docs/layouts.md, made from what the layouts say of themselves."""

from collections.abc import Iterator

from cachewarden.layouts import LAYOUTS

_TABLES = ("layouts", "kinds")


def with_tables(page: str) -> str:
    """The page with both tables written anew between their marks (`<!-- layouts -->`, `<!-- /layouts -->`).

    Raises ValueError when a mark is missing.
    """
    for name, rows in zip(_TABLES, (_layouts(), _kinds()), strict=True):
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
        before, found, rest = page.partition(start)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"the page has no table between {start.strip()} and {end.strip()}")
        page = before + start + "".join(f"| {' | '.join(row)} |\n" for row in rows) + end + after
    return page


def _layouts() -> Iterator[tuple[str, ...]]:
    yield "layout", "recognised by", "one entry is", "locks held", "never touched", "checked with"
    yield ("---",) * 6
    for each in LAYOUTS:
        yield f"`{each.name}`", each.shape, each.unit, each.locks, each.never, each.checked


def _kinds() -> Iterator[tuple[str, ...]]:
    yield "layout", "kind", "cost", ""
    yield ("---",) * 4
    for each in LAYOUTS:
        for name, kind in each.kinds.items():
            costs = ", else ".join(f"`{cost}`" for cost in kind.costs)
            yield f"`{each.name}`", f"`{name}`", costs, kind.what
