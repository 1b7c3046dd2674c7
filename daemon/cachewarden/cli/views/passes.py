"""What `once`, `apply` and `evict` say when they are done."""

from collections.abc import Iterator

from cachewarden.cli.blocks import EMPTY, Bit, Block, Column, Style, Table, bad, good, line, strong, warn
from cachewarden.cli.views.groups import reasons_table, shortfall, unseen
from cachewarden.cli.views.usage import heading
from cachewarden.cli.words import entries, holder, relative, size, upper_first
from cachewarden.paths import show
from cachewarden.report import EvictedEntry, FailedEntry, LocationReport, PassReport
from cachewarden_policies.reasons import Outcome

_COLUMNS = (
    Column("EVICTED", wraps=True),
    Column("SIZE", right=True),
    Column("FREED", right=True),
    Column("LAST USE", right=True),
    Column("WHY", wraps=True),
)
_STYLES = {
    Outcome.WITHIN_LIMITS: Style.GOOD,
    Outcome.TRIMMED: Style.GOOD,
    Outcome.WAITING: Style.WARN,
}


def outcome_bit(outcome: Outcome, text: str) -> Bit:
    """Text in the colour of an outcome."""
    return Bit(text, _STYLES.get(outcome, Style.BAD))


def pass_blocks(report: PassReport, now_ns: int, *, told: bool, requested: bool = False) -> Iterator[Block]:
    """The whole report. `told`: each eviction was shown already, as it happened. `requested`: somebody named
    the entry, and no limit was asked about.
    """
    if not report.locations:
        yield line("No location is configured, or none is there: nothing to do.")
        return
    if told and any(each.evicted or each.failed for each in report.locations):
        yield EMPTY
    for location in report.locations:
        yield from _location(location, now_ns, told=told, requested=requested)
        yield EMPTY
    gone = [each for location in report.locations for each in location.evicted]
    if len(report.locations) > 1 or gone:
        freed = sum(each.freed_bytes for each in gone)
        yield line(
            strong(f"Evicted {entries(len(gone))}" if gone else "Nothing was evicted"),
            f", {size(freed)} freed." if gone else ".",
        )


def evicted_line(entry: EvictedEntry, name: str, now_ns: int) -> Block:
    """One eviction as it happens."""
    return line(
        good("evicted "),
        f"{name}: {show(entry.entry)}, {size(entry.bytes)}, last used {relative(entry.last_use_ns, now_ns)}: "
        f"{entry.reason.sentence}",
    )


def failed_line(entry: FailedEntry, name: str) -> Block:
    """One failure as it happens."""
    return line(bad("failed  "), f"{name}: {_failure(entry)}")


def _location(location: LocationReport, now_ns: int, *, told: bool, requested: bool) -> Iterator[Block]:
    yield heading(location.name, location.path)
    nothing = unseen(location)
    if nothing is not None:
        yield line(outcome_bit(location.outcome, upper_first(nothing)), indent=1)
        return
    if requested:
        yield from _answers(location)
    else:
        said = upper_first(location.outcome.sentence)
        yield line(outcome_bit(location.outcome, said), _figures(location), indent=1)
    if location.evicted and not told:
        yield EMPTY
        yield Table(_COLUMNS, [_row(each, now_ns) for each in location.evicted], 2)
        yield EMPTY
    if location.spared and not requested:
        yield line(strong(f"Spared {entries(len(location.spared))}"), indent=1)
        yield EMPTY
        yield reasons_table(location.spared, 2)
        yield EMPTY
    if location.failed and not told:
        for failure in location.failed:
            yield line(bad("Failed: "), _failure(failure), indent=1)
    missing = shortfall(location, "Still")
    if missing is not None:
        yield line(bad(missing), indent=1)
    if location.outcome is Outcome.WAITING:
        yield line(
            f"`cachewarden plan --location {location.name}` shows what would go; "
            f"`cachewarden confirm {location.name}` lets it go",
            indent=1,
        )
    for warning in location.warnings:
        yield line(warn("Warning: "), warning, indent=1)


def _answers(location: LocationReport) -> Iterator[Block]:
    """Whether the entry that somebody named went; if not, why it stays and who holds it."""
    if location.evicted:
        yield line(good("Evicted"), ", as you asked", indent=1)
    elif location.failed:
        yield line(bad("It could not be evicted"), ": an error of the filesystem stopped it", indent=1)
    elif not location.spared:
        yield line(bad("It stays"), indent=1)
    for each in location.spared:
        who = "".join(f"; {holder(one)}" for one in each.holders)
        yield line(bad("It stays"), f": {show(each.entry)}: {each.reason.sentence}{who}", indent=1)


def _figures(location: LocationReport) -> str:
    limit = f" of {size(location.limit_bytes)}" if location.limit_bytes is not None else ""
    if location.bytes_before == location.bytes_after:
        return f": {size(location.bytes_after)}{limit}"
    return f": {size(location.bytes_before)} before, {size(location.bytes_after)}{limit} now"


def _row(entry: EvictedEntry, now_ns: int) -> tuple[str, ...]:
    return (
        show(entry.entry),
        size(entry.bytes),
        size(entry.freed_bytes),
        relative(entry.last_use_ns, now_ns),
        entry.reason.sentence,
    )


def _failure(failure: FailedEntry) -> str:
    found = failure.to_json()
    at = "" if failure.path == failure.entry else f" at {found['path']}"
    return f"{found['entry']} ({found['errno']}{at})"
