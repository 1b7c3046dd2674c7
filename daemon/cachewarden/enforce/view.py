"""What `list` and `explain` show: one row for each entry, with its verdict. And what `history` prints."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cachewarden.enforce.survey import Survey
from cachewarden.ledger import EvictionRow, Pin, Record
from cachewarden.owners import user_name, user_names
from cachewarden.paths import show
from cachewarden.recency import Confidence, confidence
from cachewarden.report import Holder, iso
from cachewarden.spec import LocationSpec
from cachewarden_policies.reasons import Cost, EvictReason, KeepReason, LastUseSource
from cachewarden_policies.verdicts import LocationPlan


@dataclass(frozen=True, slots=True)
class Row:
    """One entry as people and programs see it. Times in nanoseconds, sizes in allocated bytes.

    `gain_bytes` comes off the location, `disk_gain_bytes` is what the disk gets back, when this
    entry alone goes. `rank` is its place among what would go now, from 0, or None.
    """

    spec: LocationSpec
    entry: bytes
    paths: tuple[bytes, ...]
    layout: str
    kind: str
    size: int
    gain_bytes: int
    disk_gain_bytes: int
    files: int
    owner: int
    cost: Cost
    stale: bool
    first_seen_ns: int
    last_use_ns: int
    last_use_source: LastUseSource
    pin: Pin | None
    reason: EvictReason | KeepReason
    rank: int | None

    @property
    def verdict(self) -> str:
        """`evict` or `keep`."""
        return "evict" if isinstance(self.reason, EvictReason) else "keep"

    def to_json(self) -> dict[str, object]:
        """One object of `list --json`."""
        return {
            "location": self.spec.name,
            "path": show(self.spec.path),
            "entry": show(self.entry),
            "paths": [show(path) for path in self.paths],
            "layout": self.layout,
            "bytes": self.size,
            "gain_bytes": self.gain_bytes,
            "disk_gain_bytes": self.disk_gain_bytes,
            "files": self.files,
            "owner": self.owner,
            "cost": str(self.cost),
            "stale": self.stale,
            "first_seen": iso(self.first_seen_ns),
            "last_use": iso(self.last_use_ns),
            "last_use_source": str(self.last_use_source),
            "pinned_until": iso(self.pin.until_ns) if self.pin is not None else None,
            "verdict": self.verdict,
            "reason": str(self.reason),
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """All about one entry: its row, who holds it now, and the limits that apply, as sentences.

    `record` is what the ledger has of it; `opener` comes from there, with the user's name.
    """

    row: Row
    holders: tuple[Holder, ...]
    limits: tuple[str, ...]
    record: Record | None = None
    opener: Holder | None = None

    @property
    def appeared(self) -> bool:
        """Whether it came while its location was known, so that it was seen first when it was made."""
        return self.record is not None and self.record.appeared

    @property
    def seen_by(self) -> str | None:
        """Who saw the open that its last use is; None where it is none."""
        opens = self.row.last_use_source is LastUseSource.OPENS
        return self.record.seen_by if opens and self.record is not None else None

    @property
    def confidence(self) -> Confidence:
        """How far its last use can be trusted."""
        return confidence(self.row.last_use_source, self.seen_by)

    def to_json(self) -> dict[str, object]:
        """The object of `explain --json`."""
        opener = self.opener
        return self.row.to_json() | {
            "holders": [holder.to_json() for holder in self.holders],
            "rank": self.row.rank,
            "limits": list(self.limits),
            "last_opener": (
                {"pid": opener.pid, "name": opener.name, "user": opener.user} if opener is not None else None
            ),
            "last_use_seen_by": self.seen_by,
            "last_use_confidence": self.confidence.value,
        }


def explanation(
    row: Row, holders: tuple[Holder, ...], limits: tuple[str, ...], record: Record | None
) -> Explanation:
    """An explanation; the name of the last opener's user is looked up."""
    opener = record.opener if record is not None else None
    if opener is None or row.last_use_source is not LastUseSource.OPENS:
        return Explanation(row, holders, limits, record)
    user = user_name(opener.uid) if opener.uid is not None else ""
    return Explanation(
        row, holders, limits, record, Holder("opener", opener.pid or None, show(opener.name), user)
    )


def listing(rows: Iterable[Row]) -> list[dict[str, object]]:
    """What `list --json` prints. Looks up the names of the owners."""
    found = list(rows)
    names = {uid: user_name(uid) for uid in {row.owner for row in found}}
    return [row.to_json() | {"user": names[row.owner]} for row in found]


def history_json(rows: Sequence[EvictionRow]) -> list[dict[str, object]]:
    """What `history --json` prints. Looks up the names of the owners; null where the owner is not known."""
    names = user_names(row.owner for row in rows)
    return [row.to_json() | {"user": names.get(row.owner)} for row in rows]


def rows(survey: Survey, plan: LocationPlan, pins: Sequence[Pin | None]) -> list[Row]:
    """A row for each entry of a survey, in the survey's order; `pins` by index."""
    return [
        Row(
            spec=survey.spec,
            entry=entry.name,
            paths=entry.claim.paths,
            layout=entry.claim.layout,
            kind=entry.claim.kind,
            size=entry.measure.bytes,
            gain_bytes=entry.own_bytes,
            disk_gain_bytes=entry.disk_bytes,
            files=entry.measure.files,
            owner=entry.owner,
            cost=entry.claim.cost,
            stale=entry.claim.stale,
            first_seen_ns=facts.first_seen_ns,
            last_use_ns=facts.last_use_ns,
            last_use_source=facts.last_use_source,
            pin=pin,
            reason=verdict.reason,
            rank=verdict.rank,
        )
        for entry, facts, verdict, pin in zip(
            survey.inventory.entries, survey.facts, plan.verdicts, pins, strict=True
        )
    ]
