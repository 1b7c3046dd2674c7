"""Requests that only look. Each takes its fields first, and refuses what is left of them."""

import os
from contextlib import suppress
from dataclasses import replace

from cachewarden.enforce.view import Explanation, history_json, listing
from cachewarden.errors import ServiceRefusedError, UsageError
from cachewarden.owners import user_name
from cachewarden.paths import show
from cachewarden.report import LocationReport, PassReport
from cachewarden.service.control.asked import Asked
from cachewarden.service.control.guest import Guest
from cachewarden.service.control.pinning import pins_json
from cachewarden.service.control.seeing import own_explanation, own_report, own_rows, plain_status
from cachewarden.service.house import by_rank
from cachewarden.spec import LocationSpec

_HISTORY = 1000
_MOST_HISTORY = 10**6
_STAT_SECONDS = 5.0


def status(asked: Asked) -> object:
    """GET /status: as `status --json`; with `mine`, how much of each location is the caller's."""
    mine = asked.fields.flag("mine")
    asked.fields.end()
    found = asked.place.guest().status()
    shown = (found if asked.uid is None else plain_status(found)).to_json()
    if mine:
        figures = asked.place.host.organs.figures
        located = []
        for each, document in zip(found.locations, shown["locations"], strict=True):  # type: ignore[call-overload]
            owned = figures.owned(each.spec.key)
            size = owned.get(asked.peer.uid, 0) if owned is not None else None
            if size != 0:
                located.append(document | {"mine_bytes": size})
        shown["locations"] = located
    return shown


def entries(asked: Asked) -> object:
    """GET /entries: as `list --json`."""
    only = asked.fields.text("location")
    asked.fields.end()
    uid = asked.uid
    found = [row for _, rows in asked.place.each(only, lambda guest: guest.rows(only)) for row in rows]
    return listing(sorted(found if uid is None else own_rows(found, uid), key=by_rank))


def explain(asked: Asked) -> object:
    """GET /explain: as `explain --json`."""
    path = asked.fields.path()
    asked.fields.end()
    uid = asked.uid

    def ask(guest: Guest) -> Explanation:
        try:
            found = guest.explain(path)
        except UsageError as error:
            raise _absent(path, uid, error) from None
        if uid is not None and found.row.owner != uid:
            raise _absent(path, uid)
        return found

    found = asked.place.at(asked.place.location_of(path), ask)
    shown = found if uid is None else own_explanation(found, uid)
    return shown.to_json() | {"user": user_name(found.row.owner)}


def plan(asked: Asked) -> object:
    """POST /plan: as `plan --json`, and the service's own knowledge of opens counts."""
    only, probe = asked.fields.text("location"), asked.fields.flag("probe")
    asked.fields.end()
    if probe and asked.uid is not None:
        raise ServiceRefusedError("only root may have leases taken (probe)")
    uid = asked.uid
    found = asked.place.each(only, lambda guest: guest.plan(only=only, probe=probe))
    return plan_json(joined(found, uid), probe=probe)


def history(asked: Asked) -> object:
    """GET /history: as `history --json`. Users see that of their entries and of their locations."""
    only = asked.fields.text("location")
    limit = asked.fields.number("limit", _MOST_HISTORY) or _HISTORY
    asked.fields.end()
    guest, uid = asked.place.knowing(only), asked.uid
    if uid is None:
        return history_json(guest.history(limit=limit, only=only))
    own = {spec.key for spec in guest.select(only).locations if _owns(asked, spec, uid)}
    found = guest.history(limit=_MOST_HISTORY, only=only)
    return history_json([row for row in found if row.owner == uid or row.location in own][:limit])


def pins(asked: Asked) -> object:
    """GET /pins: those in force; users see their own."""
    asked.fields.end()
    found = asked.place.guest().pin_list()
    return pins_json(pin for pin in found if asked.uid in (None, pin.uid))


def plan_json(report: PassReport, *, probe: bool = False) -> dict[str, object]:
    """What `plan --json` prints; without leases, the service's own knowledge of opens counted."""
    return replace(report, in_use_checked="lease" if probe else "service").to_json()


def joined(found: list[tuple[Guest, PassReport]], uid: int | None) -> PassReport:
    """The reports of several filesystems as one; a user gets what is his of it."""
    located: dict[tuple[str, bytes], LocationReport] = {}
    for guest, report in found:
        own = report if uid is None else own_report(report, guest.owners, uid)
        located |= {(each.name, each.path): each for each in own.locations}
    locked = tuple(text for _, report in found for text in report.locked)
    return PassReport(tuple(located[key] for key in sorted(located)), locked=locked)


def _owns(asked: Asked, spec: LocationSpec, uid: int) -> bool:
    """Whether the location's directory is this user's; not where that cannot be found out."""
    with suppress(ServiceRefusedError, OSError):
        owner: int = asked.place.at(spec, lambda _: os.lstat(spec.path).st_uid, _STAT_SECONDS)
        return owner == uid
    return False


def _absent(path: bytes, uid: int | None, error: UsageError | None = None) -> ServiceRefusedError:
    """Users are told the same of what is not there and of what is another's."""
    text = str(error) if uid is None and error is not None else f"{show(path)}: no entry of yours is there"
    return ServiceRefusedError(text, 404)
