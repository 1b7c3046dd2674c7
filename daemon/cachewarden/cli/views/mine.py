"""What `status --mine` says: how much of each location is the caller's own."""

from collections.abc import Iterator, Mapping

from cachewarden.cli.blocks import Block, Column, Table, line, strong
from cachewarden.cli.words import size
from cachewarden.paths import show
from cachewarden.service import Status

_COLUMNS = (
    Column("LOCATION"),
    Column("PATH", wraps=True),
    Column("YOURS", right=True),
    Column("USED", right=True),
    Column("LIMIT", right=True),
)


def mine_blocks(status: Status, mine: Mapping[str, int]) -> Iterator[Block]:
    """Locations that hold something of the caller's; `mine` has the bytes by key."""
    rows = [
        (
            strong(each.spec.name),
            show(each.spec.path),
            size(mine[each.spec.key]),
            size(each.state.bytes),
            size(each.state.limit_bytes),
        )
        for each in status.locations
        if mine.get(each.spec.key)
    ]
    if not rows:
        yield line("No entry in any location is yours, as far as passes have looked.")
        return
    yield Table(_COLUMNS, rows)


def mine_json(status: Status, mine: Mapping[str, int]) -> dict[str, object]:
    """The object of `status --mine --json`."""
    located = [
        each.to_json() | {"mine_bytes": mine[each.spec.key]}
        for each in status.locations
        if mine.get(each.spec.key)
    ]
    return status.to_json() | {"locations": located}
