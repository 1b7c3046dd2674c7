"""The status page: how full each location is, how its last pass ended, and when. No names of entries."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Protocol

from cachewarden.http.style import STYLE
from cachewarden.paths import show
from cachewarden.units import format_duration, format_size
from cachewarden_policies.reasons import Outcome

# The one style that the Content-Security-Policy allows.
STYLE_HASH = "sha256-" + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

_TONES = {
    Outcome.WITHIN_LIMITS: "good",
    Outcome.TRIMMED: "busy",
    Outcome.WAITING: "warn",
    Outcome.SHORT: "warn",
    Outcome.UNAVAILABLE: "bad",
    Outcome.FAILED: "bad",
}


class LocationView(Protocol):
    """What the page reads of a location; `metrics.LocationFigures` has it."""

    @property
    def location(self) -> str: ...
    @property
    def path(self) -> bytes: ...
    @property
    def available(self) -> bool: ...
    @property
    def enforcing(self) -> bool: ...
    @property
    def limit_bytes(self) -> int | None: ...
    @property
    def target_bytes(self) -> int | None: ...
    @property
    def usage_complete(self) -> bool | None: ...
    @property
    def last_pass_ns(self) -> int | None: ...
    @property
    def outcome(self) -> Outcome | None: ...
    @property
    def bytes(self) -> int | None: ...


class FilesystemView(Protocol):
    """What the page reads of a filesystem; `metrics.FilesystemFigures` has it."""

    @property
    def filesystem(self) -> bytes: ...
    @property
    def size_bytes(self) -> int | None: ...
    @property
    def avail_bytes(self) -> int | None: ...
    @property
    def min_free_bytes(self) -> int | None: ...


class ServiceView(Protocol):
    """What the page reads of the service; `metrics.ServiceFigures` has it."""

    @property
    def version(self) -> str: ...
    @property
    def since_ns(self) -> int: ...
    @property
    def config_last_reload_successful(self) -> bool: ...


class PageSnapshot(Protocol):
    """What the page is rendered from; `metrics.Snapshot` is one."""

    @property
    def service(self) -> ServiceView: ...
    @property
    def locations(self) -> Sequence[LocationView]: ...
    @property
    def filesystems(self) -> Sequence[FilesystemView]: ...


def render_page(snapshot: PageSnapshot, now_ns: int) -> str:
    """The whole page as HTML; `now_ns` is the wall time that ages are told from."""
    return "".join(_page(snapshot, now_ns))


def _page(snapshot: PageSnapshot, now_ns: int) -> Iterator[str]:
    yield (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>cachewarden</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="refresh" content="30"><link rel="icon" href="data:,">'
        f"<style>{STYLE}</style></head><body><main>"
    )
    yield from _head(snapshot, now_ns)
    if not snapshot.service.config_last_reload_successful:
        yield (
            '<p class="card note" role="status">The last reload was refused: the configuration has an '
            "error, and the one before it is still in force. <code>cachewarden config check</code> "
            "names it.</p>"
        )
    yield "<h2>Locations</h2>"
    yield from _locations(snapshot.locations, now_ns)
    if snapshot.filesystems:
        yield "<h2>Filesystems</h2>"
        yield from _filesystems(snapshot.filesystems)
    yield (
        '<footer><a href="/metrics">Metrics</a> · <a href="/readyz">Readiness</a> · '
        '<a href="/healthz">Health</a></footer></main></body></html>\n'
    )


def _head(snapshot: PageSnapshot, now_ns: int) -> Iterator[str]:
    locations = snapshot.locations
    outcomes = [outcome for each in locations if (outcome := _outcome_of(each)) is not None]
    yield "<header><h1>cachewarden</h1>"
    if outcomes:
        yield _outcome(max(outcomes, key=lambda outcome: outcome.severity))
    total = format_size(sum(each.bytes or 0 for each in locations))
    count = "1 location" if len(locations) == 1 else f"{len(locations)} locations"
    since = format_duration(max(now_ns - snapshot.service.since_ns, 0) // 10**9 * 10**9)
    version = escape(snapshot.service.version)
    yield f"<p>{count}, {total} in all · version {version}, running for {since}</p></header>"


def _locations(locations: Sequence[LocationView], now_ns: int) -> Iterator[str]:
    if not locations:
        yield '<div class="card empty">No location is configured, or none of them exists yet.</div>'
        return
    yield (
        '<div class="card"><table><thead><tr><th>Location</th><th>Usage</th><th>Last pass ended</th>'
        "<th>When</th></tr></thead><tbody>"
    )
    for each in locations:
        yield (
            f'<tr><td class="who"><div class="name">{_name(each.location)}</div>'
            f'<div class="path">{escape(show(each.path))}</div></td>'
            f'<td class="usage">{_usage(each)}</td><td>{_state(each)}</td>'
            f'<td class="when">{_ago(each.last_pass_ns, now_ns)}</td></tr>'
        )
    yield "</tbody></table></div>"


def _name(text: str) -> str:
    return escape(show(text.encode("utf-8", "backslashreplace")))


def _usage(each: LocationView) -> str:
    if each.bytes is None:
        return '<span class="soft">not measured</span>'
    used = ("at least " if each.usage_complete is False else "") + format_size(each.bytes)
    if not each.limit_bytes:
        return f'<div class="figures"><span>{used}</span><span>no size limit</span></div>'
    share = each.bytes / each.limit_bytes
    mark = each.target_bytes / each.limit_bytes if each.target_bytes is not None else None
    return (
        f'<div class="figures"><span>{used}</span>'
        f"<span>{share * 100:.0f} % of {format_size(each.limit_bytes)}</span></div>"
        + _bar(share, mark, share > 1)
    )


def _filesystems(filesystems: Sequence[FilesystemView]) -> Iterator[str]:
    yield (
        '<div class="card"><table><thead><tr><th>Mounted at</th><th>Used</th><th>Free</th></tr></thead>'
        "<tbody>"
    )
    for each in filesystems:
        size, free, floor = each.size_bytes, each.avail_bytes, each.min_free_bytes
        usage, left = '<span class="soft">not measured yet</span>', ""
        if size and free is not None:
            share, low = 1 - free / size, floor is not None and free < floor
            mark = None if floor is None else 1 - floor / size
            usage = (
                f'<div class="figures"><span>{format_size(size - free)}</span>'
                f"<span>{share * 100:.0f} % of {format_size(size)}</span></div>" + _bar(share, mark, low)
            )
            left = format_size(free) + ("" if floor is None else f", {format_size(floor)} must stay")
        yield (
            f'<tr><td class="who"><div class="path">{escape(show(each.filesystem))}</div></td>'
            f'<td class="usage">{usage}</td><td>{left}</td></tr>'
        )
    yield "</tbody></table></div>"


def _bar(share: float, mark: float | None, over: bool) -> str:
    """A bar for the eyes alone; the figures beside it say the same. SVG, because the policy forbids
    style attributes, and widths of shapes are none."""
    width = f"{min(max(share, 0), 1) * 100:.1f}%"
    line = ""
    if mark is not None and 0 < mark < 1:
        line = f'<rect class="mark" x="{mark * 100:.1f}%" width="2" height="8"/>'
    return (
        '<svg aria-hidden="true"><rect class="track" width="100%" height="8"/>'
        f'<rect class="{"over" if over else "bar"}" width="{width}" height="8"/>{line}</svg>'
    )


def _outcome_of(each: LocationView) -> Outcome | None:
    # The last pass may have ended well before the location went away. What failed did so whether it is there
    # or not; and a cache that its user deleted is within its limits.
    stands = each.available or each.outcome in (Outcome.FAILED, Outcome.WITHIN_LIMITS)
    return each.outcome if stands else Outcome.UNAVAILABLE


def _state(each: LocationView) -> str:
    outcome = _outcome_of(each)
    pill = '<span class="pill">not yet</span>' if outcome is None else _outcome(outcome)
    return pill + ("" if each.enforcing else ' <span class="pill">report only</span>')


def _outcome(outcome: Outcome) -> str:
    words = outcome.value.replace("_", " ")
    return f'<span class="pill {_TONES[outcome]}" title="{escape(outcome.sentence)}">{words}</span>'


def _ago(time_ns: int | None, now_ns: int) -> str:
    if time_ns is None:
        return '<span class="soft">never</span>'
    stamp = datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    age = (now_ns - time_ns) // 10**9 * 10**9
    text = f"{format_duration(age)} ago" if age > 0 else "just now"
    return f'<time datetime="{stamp}" title="{stamp}">{text}</time>'
