"""What ordinary users see: their own entries and sums over locations, and nothing of anybody else's.

Sentences made for administrators go as well: they name entries, paths and people.
"""

from collections.abc import Sequence
from dataclasses import replace

from cachewarden.enforce.view import Explanation, Row
from cachewarden.owners import user_name
from cachewarden.report import Holder, LocationReport, PassReport
from cachewarden.service.control.guest import Owners
from cachewarden.service.status import Status


def own_rows(rows: Sequence[Row], uid: int) -> list[Row]:
    """Those of the user's own entries. Who pinned one and why is between those who did."""
    return [_row(row, uid) for row in rows if row.owner == uid]


def own_explanation(found: Explanation, uid: int) -> Explanation:
    """All about an own entry; of other users' processes only that there are some."""
    opener = found.opener
    return replace(
        found,
        row=_row(found.row, uid),
        holders=tuple(_holder(each, uid) for each in found.holders),
        opener=_holder(opener, uid) if opener is not None else None,
    )


def own_report(report: PassReport, owners: Owners, uid: int) -> PassReport:
    """The sums of a pass or plan, and what of it is about own entries."""
    return replace(report, locations=tuple(_location(each, owners, uid) for each in report.locations))


def plain_status(status: Status) -> Status:
    """Sums only."""
    located = [replace(each, state=replace(each.state, detail=None)) for each in status.locations]
    return replace(status, locations=located, refused=(), warnings=())


def _row(row: Row, uid: int) -> Row:
    if row.pin is None or row.pin.uid == uid:
        return row
    return replace(row, pin=replace(row.pin, reason=""))


def _location(report: LocationReport, owners: Owners, uid: int) -> LocationReport:
    owned, then = owners.get((report.name, report.path), {}), report.if_enforced
    return replace(
        report,
        if_enforced=then and tuple(each for each in then if owned.get(each.entry) == uid),
        evicted=tuple(each for each in report.evicted if owned.get(each.entry) == uid),
        spared=tuple(
            replace(each, holders=tuple(_holder(one, uid) for one in each.holders))
            for each in report.spared
            if owned.get(each.entry) == uid
        ),
        failed=tuple(each for each in report.failed if owned.get(each.entry) == uid),
        warnings=(),
    )


def _holder(holder: Holder, uid: int) -> Holder:
    return holder if holder.user == user_name(uid) else Holder(holder.kind)
