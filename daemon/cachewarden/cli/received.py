"""From the service's JSON back to the values that views show.

What JSON does not say (who pinned an entry, what a layout calls it) stays open in them.
"""

import errno
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cachewarden.enforce.view import Explanation, Row
from cachewarden.ledger import EvictionRow, LocationState, Pin, Record, ServiceState
from cachewarden.paths import unshow
from cachewarden.report import EvictedEntry, FailedEntry, Holder, LocationReport, PassReport, SparedEntry
from cachewarden.service import LocationStatus, Status
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import Policy
from cachewarden_policies.reasons import Cost, EvictReason, KeepReason, LastUseSource, Outcome

NOBODY = -1  # the uid of a pin that somebody set
Found = Mapping[str, Any]
# What JSON and the values call the same.
_STATE = (
    "layout detail bytes files entries limit_bytes available usage_complete inuse_complete recency_source "
    "waiting_bytes waiting_entries"
)
_FIGURES = (
    "bytes_before bytes_after limit_bytes target_bytes need_bytes shortfall_bytes usage_complete "
    "inuse_complete foreign_bytes disk_freed_bytes"
)


def spec(name: str, path: str, *, enforce: bool = True) -> LocationSpec:
    """A location, of which only its name and place are known."""
    return LocationSpec(name, unshow(path), Policy(), enforce=enforce)


def status(found: Found) -> Status:
    """The object of `/status`."""
    told = found["service"]
    service = None
    if told["running"]:
        service = ServiceState(
            told["pid"], _time(told["since"]) or 0, told["reload"], blinded=tuple(told["blinded"])
        )
    located = [_located(each) for each in found["locations"]]
    return Status(service, located, tuple(found["refused"]), tuple(found["warnings"]))


def _located(found: Found) -> LocationStatus:
    paused_ns = _time(found["paused_until"])
    place = spec(found["name"], found["path"], enforce=found["enforcing"] or paused_ns is not None)
    outcome = Outcome(found["outcome"]) if found["outcome"] is not None else None
    state = LocationState(
        place.key,
        place.name,
        place.path,
        outcome=outcome,
        last_pass_ns=_time(found["last_pass"]),
        over_limit_since_ns=_time(found["over_limit_since"]),
        waiting_since_ns=_time(found["waiting_since"]),
        confirmed_until_ns=_time(found["confirmed_until"]),
        **{name: found[name] for name in _STATE.split()},
    )
    missing = not found["available"] and outcome is None
    return LocationStatus(
        place, state, missing, paused_ns, _time(found["next_pass"]), watch_mode=found["watch_mode"]
    )


def row(found: Found) -> Row:
    """One object of `/entries`."""
    place, entry = spec(found["location"], found["path"]), unshow(found["entry"])
    evicts = found["verdict"] == "evict"
    reason = EvictReason(found["reason"]) if evicts else KeepReason(found["reason"])
    until_ns = _time(found["pinned_until"])
    pinned = until_ns is not None or reason is KeepReason.PINNED
    return Row(
        spec=place,
        entry=entry,
        paths=tuple(unshow(path) for path in found["paths"]),
        layout=found["layout"],
        kind=found["layout"],
        size=found["bytes"],
        gain_bytes=found["gain_bytes"],
        disk_gain_bytes=found["disk_gain_bytes"],
        files=found["files"],
        owner=found["owner"],
        cost=Cost(found["cost"]),
        stale=found["stale"],
        first_seen_ns=_time(found["first_seen"]) or 0,
        last_use_ns=_time(found["last_use"]) or 0,
        last_use_source=LastUseSource(found["last_use_source"]),
        pin=Pin(os.path.join(place.path, entry), 0, until_ns, "", NOBODY) if pinned else None,
        reason=reason,
        rank=found.get("rank"),
    )


def explanation(found: Found) -> Explanation:
    """The object of `/explain`."""
    told, opener = row(found), found["last_opener"]
    record = Record(told.first_seen_ns, False, told.size, seen_by=found["last_use_seen_by"])
    return Explanation(
        told,
        tuple(_holder(each) for each in found["holders"]),
        tuple(found["limits"]),
        record,
        _holder({"kind": "opener", **opener}) if opener is not None else None,
    )


def eviction(found: Found) -> EvictionRow:
    """One object of `/history`."""
    place = spec(found["location"], found["path"])
    return EvictionRow(
        time_ns=_time(found["time"]) or 0,
        location=place.key,
        name=place.name,
        path=place.path,
        entry=unshow(found["entry"]),
        bytes=found["bytes"],
        freed_bytes=found["freed_bytes"],
        reason=found["reason"],
        outcome=found["outcome"],
        last_use_ns=_time(found["last_use"]),
        owner=found.get("owner"),  # a service that was not restarted since an upgrade does not say it
    )


def pin(found: Found) -> Pin:
    """One object of `/pins`."""
    since_ns = _time(found["since"]) or 0
    return Pin(unshow(found["path"]), since_ns, _time(found["until"]), found["reason"], found["uid"])


def report(found: Found) -> PassReport:
    """The object of `/evict`."""
    return PassReport(tuple(_reported(each) for each in found["locations"]))


def _reported(found: Found) -> LocationReport:
    return LocationReport(
        found["name"],
        unshow(found["path"]),
        found["layout"],
        Outcome(found["outcome"]),
        evicted=tuple(_evicted(each) for each in found["evicted"]),
        spared=tuple(
            SparedEntry(
                unshow(each["entry"]),
                each["bytes"],
                KeepReason(each["reason"]),
                tuple(_holder(one) for one in each["holders"]),
            )
            for each in found["spared"]
        ),
        failed=tuple(
            FailedEntry(unshow(each["entry"]), getattr(errno, each["errno"], 0), unshow(each["path"]))
            for each in found["failed"]
        ),
        blocked={KeepReason(reason): size for reason, size in found["blocked_bytes"].items()},
        warnings=tuple(found["warnings"]),
        **{name: found[name] for name in _FIGURES.split()},
    )


def _evicted(found: Found) -> EvictedEntry:
    return EvictedEntry(
        unshow(found["entry"]),
        found["bytes"],
        found["freed_bytes"],
        EvictReason(found["reason"]),
        _time(found["last_use"]) or 0,
        LastUseSource(found["last_use_source"]),
    )


def _holder(found: Found) -> Holder:
    return Holder(found["kind"], found["pid"], found["name"], found["user"])


def _time(text: str | None) -> int | None:
    return None if text is None else int(datetime.fromisoformat(text).timestamp()) * 10**9
