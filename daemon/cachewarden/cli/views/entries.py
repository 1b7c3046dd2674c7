"""What `list` says: the entries of each location, what goes first on top."""

from collections.abc import Iterator, Mapping, Sequence

from cachewarden.cli.blocks import EMPTY, Block, Column, Content, Table, dim, line, warn
from cachewarden.cli.views.usage import heading
from cachewarden.cli.words import entries, number, relative, size, until
from cachewarden.enforce.view import Row
from cachewarden.owners import user_name
from cachewarden.paths import show
from cachewarden_policies.reasons import KeepReason

_COLUMNS = (
    Column("ENTRY", wraps=True),
    Column("SIZE", right=True),
    Column("GAIN", right=True, needs=110),
    Column("FILES", right=True, needs=120),
    Column("LAST USE", right=True),
    Column("KNOWN BY", needs=100),
    Column("COST", needs=110),
    Column("OWNER", needs=130),
    Column("VERDICT"),
    Column("WHY", wraps=True),
)


def list_blocks(rows: Sequence[Row], now_ns: int) -> Iterator[Block]:
    """All entries, by location."""
    located: dict[str, list[Row]] = {}
    for row in rows:
        located.setdefault(row.spec.key, []).append(row)
    if not located:
        yield line("No entries.")
    for number_, mine in enumerate(sorted(located.values(), key=lambda each: _place(each[0]))):
        if number_:
            yield EMPTY
        spec, total = mine[0].spec, sum(row.size for row in mine)
        names = {uid: user_name(uid) for uid in {row.owner for row in mine}}
        yield heading(spec.name, spec.path)
        yield line(f"{entries(len(mine))}, {size(total)}", indent=1)
        yield EMPTY
        yield Table(_COLUMNS, [_row(each, names, now_ns) for each in sorted(mine, key=first_to_go)], 1)


def first_to_go(row: Row) -> tuple[bool, int, int, bytes]:
    """Sort key: by rank what goes now, then the rest, least recently used first."""
    return row.rank is None, row.rank or 0, row.last_use_ns, row.entry


def _place(row: Row) -> tuple[str, bytes]:
    return row.spec.name, row.spec.path


def _row(row: Row, names: Mapping[int, str], now_ns: int) -> tuple[Content, ...]:
    return (
        show(row.entry),
        size(row.size),
        size(row.gain_bytes),
        number(row.files),
        relative(row.last_use_ns, now_ns),
        str(row.last_use_source),
        str(row.cost),
        names[row.owner],
        warn("go") if row.verdict == "evict" else dim("stay"),
        _why(row, now_ns),
    )


def _why(row: Row, now_ns: int) -> str:
    if row.pin is None:
        return row.reason.sentence
    pinned = f"pinned {until(row.pin.until_ns, now_ns)}" + (f": {row.pin.reason}" if row.pin.reason else "")
    return pinned if row.reason is KeepReason.PINNED else f"{row.reason.sentence}; {pinned}"
