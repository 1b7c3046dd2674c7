"""What `explain` says: the story of one entry, in sentences."""

from collections.abc import Iterator, Sequence

from cachewarden.cli.blocks import EMPTY, Bit, Block, Column, Content, Style, Table, bad, line, strong
from cachewarden.cli.received import NOBODY
from cachewarden.cli.words import MISS, a, holder, moment, plural, relative, sentence, size, until
from cachewarden.enforce.view import Explanation, Row
from cachewarden.ledger import EvictionRow
from cachewarden.owners import user_name
from cachewarden.paths import show
from cachewarden.recency import SEEN_BY_FANOTIFY, SEEN_BY_SAMPLES
from cachewarden.report import Holder
from cachewarden_policies.reasons import KeepReason, LastUseSource

_PAST = 5
_COLUMNS = (Column(""), Column("", wraps=True))
_SEEN = {
    SEEN_BY_FANOTIFY: ("opened", ", seen by fanotify"),
    SEEN_BY_SAMPLES: ("in use", ", seen in a sample of /proc"),
}
Told = tuple[Content, Content]


def explain_blocks(found: Explanation, past: Sequence[EvictionRow], now_ns: int) -> Iterator[Block]:
    """The story. `past`: earlier evictions of the same entry, newest first."""
    yield from _heading(show(found.row.entry), found.row.spec.name, found.row.spec.path)
    yield Table(_COLUMNS, [*_story(found, past, now_ns)], 1)


def gone_blocks(path: bytes, past: Sequence[EvictionRow], now_ns: int) -> Iterator[Block]:
    """The story of what is not there any more. `past` has one eviction at least."""
    last = past[0]
    yield from _heading(show(path), last.name, last.path)
    told: list[Told] = [("Verdict", strong("it is not there any more"))]
    told += _titled("Evictions", [_eviction(each, now_ns) for each in past[:_PAST]])
    if last.last_use_ns is not None:
        source = f"known from {last.last_use_source.sentence}" if last.last_use_source is not None else ""
        told.append(("Last use", _joined(_when(last.last_use_ns, now_ns), source)))
    yield Table(_COLUMNS, told, 1)


def _heading(what: str, name: str, path: bytes) -> Iterator[Block]:
    yield line(strong(what))
    yield line(f"in location {name}, {show(path)}", indent=1)
    yield EMPTY


def _story(found: Explanation, past: Sequence[EvictionRow], now_ns: int) -> Iterator[Told]:
    row = found.row
    yield "Verdict", _verdict(row)
    yield "What it is", _what(row)
    if row.paths != (row.entry,):
        yield from _titled("Consists of", [show(path) for path in row.paths])
    yield "Its eviction", _gains(row)
    yield "Last use", _last_use(found, now_ns)
    yield "How sure", found.confidence.sentence
    if found.holders:
        yield from _titled("In use", [bad(holder(each)) for each in found.holders])
    else:
        yield "In use", "nobody was seen using it just now; an eviction asks the kernel again"
    yield "Pin", _pin(row, now_ns)
    yield from _titled("Limits", found.limits)
    yield from _titled("Before", [_eviction(each, now_ns) for each in past[:_PAST]])


def _titled(title: str, contents: Sequence[Content]) -> Iterator[Told]:
    """Several rows under one title."""
    for number, content in enumerate(contents):
        yield "" if number else title, content


def _verdict(row: Row) -> Bit:
    if row.verdict == "keep":
        return Bit(f"it stays: {row.reason.sentence}", Style.GOOD)
    place = ""
    if row.rank is not None:
        place = (
            "; it is the first to go" if row.rank == 0 else f"; {plural(row.rank, 'goes', 'go')} before it"
        )
    return Bit(f"it would go now: {row.reason.sentence}{place}", Style.WARN)


def _what(row: Row) -> str:
    # A layout with one kind of entries calls them by its own name.
    kind = (
        f"{a(row.kind)} of layout {row.layout}"
        if row.kind != row.layout
        else f"an entry of layout {row.layout}"
    )
    stale = "; made by a version that is gone" if row.stale else ""
    what = f"{size(row.size)} in {plural(row.files, 'file', 'files')}"
    return f"{kind}: {what}, owned by {user_name(row.owner)}{stale}"


def _gains(row: Row) -> str:
    again = f"; when somebody wants it again, {MISS[row.cost]}"
    if row.gain_bytes == row.disk_gain_bytes == row.size:
        return f"frees {size(row.size)}{again}"
    return (
        f"takes {size(row.gain_bytes)} off the location and gives the disk {size(row.disk_gain_bytes)} back, "
        f"because others share its data (links, other entries){again}"
    )


def _last_use(found: Explanation, now_ns: int) -> str:
    row = found.row
    when = _when(row.last_use_ns, now_ns)
    first = "appeared" if found.appeared else "first seen"
    seen = f"; {first} {relative(row.first_seen_ns, now_ns)}"
    match row.last_use_source:
        case LastUseSource.OPENS:
            did, how = _SEEN.get(found.seen_by or "", ("opened", ""))
            by = f" by {_opener(found.opener)}" if found.opener is not None else ""
            return f"{did}{by} {when}{how}{seen}"
        case LastUseSource.ATIME:
            return f"read {when}, by its access time{seen}"
        case LastUseSource.RELATIME:
            return f"read {when}, by its access time (relatime: to the day){seen}"
        case LastUseSource.STAMPS:
            return f"not seen in use; its newest file changed {when}{seen}"
        case LastUseSource.FIRST_SEEN:
            return f"not seen in use; {first} {when}"


def _opener(opener: Holder) -> str:
    """`python3 (pid 4711, alice)`, as far as it is known."""
    known = [f"pid {opener.pid}"] if opener.pid else []
    known += [opener.user] if opener.user else []
    name = opener.name or ("a process that had ended" if opener.pid else "a process of another pid namespace")
    return f"{name} ({', '.join(known)})" if known else name


def _when(time_ns: int, now_ns: int) -> str:
    return f"{relative(time_ns, now_ns)} ({moment(time_ns)})"


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _pin(row: Row, now_ns: int) -> str:
    if row.pin is None:
        return "the pins cannot be read" if row.reason is KeepReason.PINNED else "not pinned"
    reason = f": {row.pin.reason}" if row.pin.reason else ""
    if row.pin.uid == NOBODY:
        return f"pinned {until(row.pin.until_ns, now_ns)}"
    who = f"by {user_name(row.pin.uid)}{reason} (at {show(row.pin.path)})"
    return f"pinned {until(row.pin.until_ns, now_ns)} {who}"


def _eviction(eviction: EvictionRow, now_ns: int) -> str:
    did = {"removed": "evicted", "gone": "gone already"}.get(eviction.outcome, eviction.outcome)
    freed = f", {size(eviction.freed_bytes)} freed" if eviction.outcome == "removed" else ""
    return (
        f"{did} {_when(eviction.time_ns, now_ns)}: {sentence(eviction.reason)}; {size(eviction.bytes)}{freed}"
    )
