"""What is remembered: evictions, pins, and what lies in the trash."""

from collections.abc import Iterator, Sequence

from cachewarden.cli.blocks import Block, Column, Content, Table, bad, good, line, warn
from cachewarden.cli.words import moment, number, relative, sentence, size, until
from cachewarden.ledger import EvictionRow, Pin
from cachewarden.owners import user_name, user_names
from cachewarden.paths import show
from cachewarden.service.keeping import TrashRow

_WHAT = (Column("WHEN"), Column("LOCATION"), Column("ENTRY", wraps=True))
_USER = Column("USER")
_HOW = (
    Column("SIZE", right=True),
    Column("FREED", right=True, needs=100),
    Column("OUTCOME"),
    Column("LAST USE BEFORE", right=True, needs=120),
    Column("WHY", wraps=True),
)
_PINS = (
    Column("PATH", wraps=True),
    Column("UNTIL", wraps=True),
    Column("BY"),
    Column("SINCE", right=True),
    Column("WHY", wraps=True),
)
_TRASH = (
    Column("LOCATION"),
    Column("BELONGS TO", wraps=True),
    Column("STATE"),
    Column("SIZE", right=True),
    Column("FILES", right=True),
    Column("IS NOW", wraps=True, needs=120),
)


def history_blocks(rows: Sequence[EvictionRow], most: int) -> Iterator[Block]:
    """Evictions, newest first; of more than `most` only these. With their users where there are several."""
    if not rows:
        yield line("Nothing has been evicted yet.")
        return
    shown = rows[:most]
    names = user_names(row.owner for row in shown)
    if len(names) > 1:
        table = [(*_what(row), names.get(row.owner, "-"), *_how(row)) for row in shown]
        yield Table((*_WHAT, _USER, *_HOW), table)
    else:
        yield Table((*_WHAT, *_HOW), [(*_what(row), *_how(row)) for row in shown])
    if len(rows) > most:
        yield line("… and older ones: `cachewarden history --json` has them all")


def _what(row: EvictionRow) -> tuple[Content, ...]:
    return moment(row.time_ns), row.name, show(row.entry)


def _how(row: EvictionRow) -> tuple[Content, ...]:
    styles = {"removed": good, "gone": good, "spared": warn}
    before = "-" if row.last_use_ns is None else relative(row.last_use_ns, row.time_ns)
    return (
        size(row.bytes),
        size(row.freed_bytes),
        styles.get(row.outcome, bad)(row.outcome),
        before,
        sentence(row.reason),
    )


def pins_blocks(pins: Sequence[Pin], now_ns: int) -> Iterator[Block]:
    """Pins in force, the one that ends first on top."""
    if not pins:
        yield line("Nothing is pinned.")
        return
    ordered = sorted(pins, key=lambda pin: (pin.until_ns is None, pin.until_ns or 0, pin.path))
    rows = [
        (
            show(pin.path),
            until(pin.until_ns, now_ns).removeprefix("until "),
            user_name(pin.uid),
            relative(pin.created_ns, now_ns),
            pin.reason,
        )
        for pin in ordered
    ]
    yield Table(_PINS, rows)


def trash_blocks(rows: Sequence[TrashRow]) -> Iterator[Block]:
    """What lies in the trash."""
    if not rows:
        yield line("The trash is empty.")
        return
    yield Table(
        _TRASH,
        [
            (
                row.spec.name,
                show(row.item.origin) if row.item.origin is not None else "(unknown)",
                row.item.state,
                size(row.item.bytes),
                number(row.item.files),
                show(row.item.path),
            )
            for row in rows
        ],
    )
