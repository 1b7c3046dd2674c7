"""Entries that stay, grouped by the reason: nobody reads two thousand lines that say the same."""

from collections.abc import Iterable, Sequence

from cachewarden.cli.blocks import Column, Table
from cachewarden.cli.words import SHORT, holder, number, size
from cachewarden.paths import show
from cachewarden.report import LocationReport, SparedEntry
from cachewarden_policies.reasons import KeepReason

_EXAMPLES = 3


def by_reason(spared: Iterable[SparedEntry]) -> list[tuple[KeepReason, list[SparedEntry]]]:
    """The groups, the largest (in bytes) first, and in each the largest entry first."""
    groups: dict[KeepReason, list[SparedEntry]] = {}
    for entry in spared:
        groups.setdefault(entry.reason, []).append(entry)
    for entries in groups.values():
        entries.sort(key=lambda each: (-each.bytes, each.entry))
    return sorted(groups.items(), key=lambda group: (-_bytes(group[1]), group[0]))


def reasons_table(spared: Sequence[SparedEntry], indent: int) -> Table:
    """One row for each reason: how many, how much, and which for example."""
    rows = [
        (reason.sentence, number(len(entries)), size(_bytes(entries)), _examples(entries))
        for reason, entries in by_reason(spared)
    ]
    columns = (
        Column("WHY", wraps=True),
        Column("ENTRIES", right=True),
        Column("SIZE", right=True),
        Column("WHICH", wraps=True),
    )
    return Table(columns, rows, indent)


def shortfall(location: LocationReport, verb: str) -> str | None:
    """How much is missing and what blocks it, in words; None when nothing is missing."""
    if not location.shortfall_bytes:
        return None
    blocks = sorted(location.blocked.items(), key=lambda each: (-each[1], each[0]))
    what = ", ".join(f"{size(count)} {SHORT[reason]}" for reason, count in blocks if count)
    return f"{verb} {size(location.shortfall_bytes)} over" + (f": {what}" if what else "")


def unseen(location: LocationReport) -> str | None:
    """Why nothing is known of a location: it is not there, or could not be looked at. None: it was."""
    if location.evicted or location.spared or location.bytes_before or not location.warnings:
        return None
    return "; ".join(location.warnings)


def _bytes(entries: Iterable[SparedEntry]) -> int:
    return sum(entry.bytes for entry in entries)


def _examples(entries: Sequence[SparedEntry]) -> str:
    named = ", ".join(_named(entry) for entry in entries[:_EXAMPLES])
    more = len(entries) - _EXAMPLES
    return f"{named} and {more:,} more" if more > 0 else named


def _named(entry: SparedEntry) -> str:
    name = show(entry.entry)
    return f"{name} ({holder(entry.holders[0])})" if entry.holders else name
