"""What `explain` says: the story of one entry, in sentences."""

from collections.abc import Iterator, Sequence

from cachewarden.cli.blocks import Block, Content, Line, bad, good, line, strong, warn
from cachewarden.cli.words import MISS, holder, moment, plural, relative, sentence, size, until, user
from cachewarden.enforce.view import Explanation, Row
from cachewarden.ledger import EvictionRow
from cachewarden.paths import show
from cachewarden_policies.reasons import KeepReason, LastUseSource

_PAST = 5
_DISK_MAY_DIFFER = "its data is also used elsewhere, by a link outside or by another entry"


def explain_blocks(found: Explanation, past: Sequence[EvictionRow], now_ns: int) -> Iterator[Block]:
    """The story. `past`: earlier evictions of the same entry, newest first."""
    row = found.row
    yield line(strong(show(row.entry)))
    yield line(f"in location {row.spec.name}, {show(row.spec.path)}", indent=1)
    yield line()
    yield _told("Verdict", *_verdict(row))
    yield _told("What it is", _what(row))
    if len(row.paths) > 1:
        yield _told("Consists of", ", ".join(map(show, row.paths)))
    yield _told("Its eviction", _gains(row))
    yield _told("Last use", _last_use(row, now_ns))
    for number, each in enumerate(found.holders):
        yield _told("" if number else "In use", bad(holder(each)) if not number else holder(each))
    if not found.holders:
        yield _told("In use", "nobody was seen using it just now; an eviction asks the kernel again")
    yield _told("Pin", _pin(row, now_ns))
    for number, limit in enumerate(found.limits):
        yield _told("" if number else "Limits", limit)
    for number, eviction in enumerate(past[:_PAST]):
        yield _told("" if number else "Before", _eviction(eviction, now_ns))


def gone_blocks(path: bytes, past: Sequence[EvictionRow], now_ns: int) -> Iterator[Block]:
    """The story of an entry that is not there any more. `past` has one eviction at least."""
    yield line(strong(show(path)))
    yield line(f"in location {past[0].name}, {show(past[0].path)}", indent=1)
    yield line()
    last = past[0]
    if last.outcome in ("removed", "gone"):
        yield _told("Verdict", good("gone"), f": {sentence(last.reason)}")
    for number, eviction in enumerate(past[:_PAST]):
        yield _told("" if number else "What was", _eviction(eviction, now_ns))
    if last.last_use_ns is not None:
        source = last.last_use_source.sentence if last.last_use_source is not None else "unknown"
        used = f"{relative(last.last_use_ns, now_ns)}, {moment(last.last_use_ns)}, as {source} says"
        yield _told("Last use", used)


def _told(title: str, *content: Content) -> Line:
    """A line of the story, under its title."""
    return line(f"{title:<13}", *content, indent=1)


def _verdict(row: Row) -> tuple[Content, ...]:
    if row.rank is not None:
        place = "it goes first" if row.rank == 0 else f"{row.rank} go before it"
        return warn("it would go now"), f": {row.reason.sentence}; {place}"
    if row.verdict == "evict":
        return warn("it would go now"), f": {row.reason.sentence}"
    return good("it stays"), f": {row.reason.sentence}"


def _what(row: Row) -> str:
    stale = "; made by a version that is gone" if row.stale else ""
    return (
        f"a {row.kind} of layout {row.layout}: {size(row.size)} in {plural(row.files, 'file', 'files')}, "
        f"owned by {user(row.owner)}{stale}"
    )


def _gains(row: Row) -> str:
    disk = "the same" if row.disk_gain_bytes == row.gain_bytes else f"{size(row.disk_gain_bytes)}"
    why = f" ({_DISK_MAY_DIFFER})" if row.disk_gain_bytes < row.size else ""
    return (
        f"alone it would take {size(row.gain_bytes)} off the location and give the disk {disk} back{why}; "
        f"when somebody wants it again, {MISS[row.cost]}"
    )


def _last_use(row: Row, now_ns: int) -> str:
    seen = f"first seen {relative(row.first_seen_ns, now_ns)}"
    if row.last_use_source is LastUseSource.FIRST_SEEN:
        return f"never seen; {seen}"
    return (
        f"{relative(row.last_use_ns, now_ns)}, {moment(row.last_use_ns)}, as {row.last_use_source.sentence} "
        f"says; {seen}"
    )


def _pin(row: Row, now_ns: int) -> str:
    if row.pin is not None:
        reason = f": {row.pin.reason}" if row.pin.reason else ""
        where = f"{show(row.pin.path)}, by {user(row.pin.uid)}"
        return f"pinned {until(row.pin.until_ns, now_ns)}{reason} ({where})"
    return "the pins cannot be read" if row.reason is KeepReason.PINNED else "not pinned"


def _eviction(eviction: EvictionRow, now_ns: int) -> str:
    did = {"removed": "evicted", "gone": "gone already"}.get(eviction.outcome, eviction.outcome)
    freed = f"; {size(eviction.freed_bytes)} freed" if eviction.outcome == "removed" else ""
    return (
        f"{did} {relative(eviction.time_ns, now_ns)}, {moment(eviction.time_ns)}: "
        f"{sentence(eviction.reason)}; {size(eviction.bytes)}{freed}"
    )
