"""What `plan` says: what would go, in which order and why, what stays and why, and the totals."""

from collections.abc import Collection, Iterator, Sequence

from cachewarden.cli.blocks import EMPTY, Block, Column, Line, Table, bad, dim, good, line, strong, warn
from cachewarden.cli.views.groups import reasons_table, shortfall, unseen
from cachewarden.cli.views.passes import outcome_bit
from cachewarden.cli.views.usage import heading, usage
from cachewarden.cli.words import entries, number, plural, relative, size, upper_first
from cachewarden.paths import show
from cachewarden.report import EvictedEntry, LocationReport, PassReport
from cachewarden_policies.reasons import Outcome

_COLUMNS = (
    Column("#", right=True),
    Column("ENTRY", wraps=True),
    Column("SIZE", right=True),
    Column("DISK GETS", right=True, needs=90),
    Column("LAST USE", right=True),
    Column("KNOWN BY", needs=100),
    Column("WHY", wraps=True),
)
_CHECKED = {
    "proc": "Who uses what was looked up once, in /proc. A pass asks the kernel again, for each file, at the "
    "moment of the eviction, and plans anew with what it finds then.",
    "lease": "Every file of what would go was leased and given back: nobody had it open at that moment. "
    "A pass asks again.",
    "service": "The running service was asked who uses what. A pass asks again.",
}


def plan_blocks(report: PassReport, now_ns: int, report_only: Collection[str] = ()) -> Iterator[Block]:
    """The whole plan. `report_only`: names of locations that are not enforced."""
    for location in report.locations:
        yield from location_blocks(location, now_ns)
        if location.name in report_only:
            yield from _if_enforced(location, now_ns)
            yield line(
                warn("Report only: "),
                f"nothing goes while enforce = false stands there; `cachewarden enforce {location.name}` "
                "turns it on",
                indent=1,
            )
        yield EMPTY
    yield from totals(report)
    if report.in_use_checked in _CHECKED and any(each.evicted for each in report.locations):
        yield line(dim(_CHECKED[report.in_use_checked]))


def location_blocks(location: LocationReport, now_ns: int, most: int | None = None) -> Iterator[Block]:
    """One location's part; of what would go, only the first `most` entries by name."""
    yield heading(location.name, location.path, location.layout)
    nothing = unseen(location)
    if nothing is not None:
        yield line(outcome_bit(location.outcome, upper_first(nothing)), indent=1)
        return
    yield usage(location.bytes_before, location.limit_bytes, location.target_bytes)
    if location.evicted:
        yield _would_go(location)
        yield from _by_rank(location.evicted, now_ns, most)
    else:
        yield line(strong("Nothing would go"), f": {_why_nothing(location)}.", indent=1)
    if location.spared:
        kept = sum(each.bytes for each in location.spared)
        yield line(strong("Would stay"), f": {entries(len(location.spared))}, {size(kept)} in sum", indent=1)
        yield EMPTY
        yield reasons_table(location.spared, 2)
        yield EMPTY
    yield from _ends(location)


def _if_enforced(location: LocationReport, now_ns: int) -> Iterator[Block]:
    if not location.if_enforced:
        return
    gone = sum(each.bytes for each in location.if_enforced)
    would = f": {entries(len(location.if_enforced))}, {size(gone)}"
    yield line(strong("If it were enforced, would go"), would, indent=1)
    yield from _by_rank(location.if_enforced, now_ns)


def _by_rank(going: Sequence[EvictedEntry], now_ns: int, most: int | None = None) -> Iterator[Block]:
    """What would go, in order; only the first `most` by name."""
    shown = going[:most]
    yield EMPTY
    yield Table(_COLUMNS, [_row(rank, each, now_ns) for rank, each in enumerate(shown, 1)], 2)
    if len(shown) < len(going):
        yield line(f"and {entries(len(going) - len(shown))} more", indent=2)
    yield EMPTY


def _would_go(location: LocationReport) -> Line:
    gain = location.bytes_before - location.bytes_after
    disk = sum(each.freed_bytes for each in location.evicted)
    gets = f", the disk gets {size(disk)} back" if disk != gain else ""
    return line(
        strong("Would go"),
        f": {entries(len(location.evicted))}, {size(gain)} off the location{gets}",
        indent=1,
    )


def _row(rank: int, entry: EvictedEntry, now_ns: int) -> tuple[str, ...]:
    return (
        number(rank),
        show(entry.entry),
        size(entry.bytes),
        size(entry.freed_bytes),
        relative(entry.last_use_ns, now_ns),
        str(entry.last_use_source),
        entry.reason.sentence,
    )


def _why_nothing(location: LocationReport) -> str:
    if not location.spared:
        return "there are no entries"
    if location.outcome is Outcome.WITHIN_LIMITS:
        return "everything is within its limits"
    return location.outcome.sentence


def _ends(location: LocationReport) -> Iterator[Block]:
    missing = shortfall(location, "Would still be")
    if missing is not None:
        yield line(bad(missing), indent=1)
    elif location.evicted and location.limit_bytes is not None:
        after = f"{size(location.bytes_after)} of {size(location.limit_bytes)}"
        yield line(good(f"Would then use {after}"), indent=1)
    if location.outcome is Outcome.WAITING:
        yield line(
            warn("More would have to go than max_share allows in one pass: "),
            f"a pass stops there and waits for `cachewarden confirm {location.name}`",
            indent=1,
        )
    if location.foreign_bytes:
        yield line(
            f"{size(location.foreign_bytes)} in it are not part of the cache: counted, never touched",
            indent=1,
        )
    for warning in location.warnings:
        yield line(warn("Warning: "), warning, indent=1)


def totals(report: PassReport) -> Iterator[Block]:
    """What would go from all locations together."""
    if not report.locations:
        yield line("No location is configured, or none is there: nothing to plan.")
        return
    gone = [each for location in report.locations for each in location.evicted]
    if not gone:
        yield line(strong("Nothing would go."))
        return
    gain = sum(each.bytes_before - each.bytes_after for each in report.locations if each.evicted)
    places = sum(1 for each in report.locations if each.evicted)
    yield line(
        strong(f"{entries(len(gone))} would go"),
        f" from {plural(places, 'location', 'locations')}: {size(gain)}, of which the disk gets "
        f"{size(sum(each.freed_bytes for each in gone))} back.",
    )
