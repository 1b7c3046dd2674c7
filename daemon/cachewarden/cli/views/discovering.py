"""What `discover` says: the places, what is inside those that only a name speaks for, what was left out."""

from collections.abc import Iterator, Sequence

from cachewarden.cli.blocks import EMPTY, Block, Column, Content, Table, dim, good, line, strong, warn
from cachewarden.cli.words import entries, number, plural, relative, size
from cachewarden.discover import Discovery, Found, KindFound, Notice
from cachewarden.paths import show

_COLUMNS = (
    Column("TOOL", wraps=True),
    Column("PATH", wraps=True),
    Column("SIZE", right=True),
    Column("ENTRIES", right=True),
    Column("LAST USE", right=True),
    Column("WOULD FREE", right=True),
    Column("FOUND BY", wraps=True, needs=140),
    Column("PROPOSED AS", wraps=True),
)
_NAMED = 20


def discovery_blocks(found: Discovery, now_ns: int, written: str | None = None) -> Iterator[Block]:
    """The whole answer. `written`: the file that has the proposal now."""
    if found.places:
        yield Table(_COLUMNS, [_row(each, now_ns) for each in found.places])
    else:
        yield line("No cache was found.")
    for each in found.places:
        if each.by_name:
            yield EMPTY
            yield from _inside(each)
    yield EMPTY
    yield from _left_out(found)
    yield EMPTY
    yield from _next(found, written)


def _row(found: Found, now_ns: int) -> tuple[Content, ...]:
    return (
        ", ".join(found.titles) or dim("a folder's name"),
        show(found.path),
        size(found.bytes) + ("" if found.complete else " or more"),
        number(found.entries),
        relative(found.last_use_ns, now_ns),
        size(found.would_free_bytes),
        ", ".join(found.via),
        _proposed(found),
    )


def _proposed(found: Found) -> Content:
    if found.configured:
        return good(f"configured: {found.location}")
    if found.location is None:
        return dim(f"not proposed: {found.reason}")
    return strong(found.location)


def _inside(found: Found) -> Iterator[Block]:
    yield line(strong(show(found.path)), ": a name says nothing; this is in it")
    columns = (Column(""), Column("", right=True), Column("", wraps=True))
    yield Table(columns, [_kind(each) for each in found.kinds] or [("nothing", "", "")], 1)


def _kind(kind: KindFound) -> tuple[Content, ...]:
    told = f"{kind.kind} ({kind.layout})" if kind.kind != kind.layout else kind.kind
    kept = ""
    if kind.kept:
        why = "; ".join(reason.sentence for reason in kind.reasons)
        count = "all" if kind.kept == kind.entries else f"{kind.kept:,}"
        kept = f"{count} kept: {why}"
    return f"{told}: {entries(kind.entries)}", size(kind.bytes), kept


def _left_out(found: Discovery) -> Iterator[Block]:
    shown: Sequence[Notice] = found.notices[:_NAMED]
    for each in shown:
        yield line(warn("Not looked at: "), f"{show(each.path)} {each.reason}")
    more = len(found.notices) - len(shown)
    if more > 0:
        yield line(f"and {plural(more, 'more path', 'more paths')}; --json has all of them")
    if found.unread:
        yield line(
            warn("Not looked at: "),
            f"the environment of {plural(found.unread, 'process', 'processes')}, which may not be read",
        )


def _next(found: Discovery, written: str | None) -> Iterator[Block]:
    count = sum(each.location is not None and not each.configured for each in found.places)
    if not count:
        yield line("There is nothing to propose.")
    elif written is None:
        yield line(
            f"{plural(count, 'place', 'places')} would become locations; nothing was changed. "
            "The configuration for it: -o FILE writes it, --toml prints it."
        )
    else:
        yield line(f"The proposal is in {written}; look at it with: cachewarden --config {written} plan")
        yield line(
            "Nothing goes while enforce = false stands there; this shows what would go, asks, and turns it "
            f"on: cachewarden --config {written} enforce {_first(found)}"
        )


def _first(found: Discovery) -> str:
    """The proposed location of which most would go; of some, what would go is not known."""
    proposed = [each for each in found.places if each.location is not None and not each.configured]
    return max(proposed, key=lambda each: each.would_free_bytes or 0).location or "NAME"
