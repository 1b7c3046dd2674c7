"""Values as the house returns them, for the tests of what is said of them."""

from dataclasses import replace

from cachewarden.enforce.view import Explanation, Row
from cachewarden.enforce.view import explanation as explained
from cachewarden.ledger import EvictionRow, LocationState, Pin, Record, ServiceState
from cachewarden.report import EvictedEntry, FailedEntry, Holder, LocationReport, PassReport, SparedEntry
from cachewarden.service.status import LocationStatus, Status
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import DAY, HOUR, MINUTE, Policy
from cachewarden_policies.reasons import Cost, EvictReason, KeepReason, LastUseSource, Outcome

NOW = 1_700_000_000 * 10**9
GIB = 2**30
SPEC = LocationSpec("models", b"/srv/hub", Policy())
SERVER = Holder("mapped", 812, "python3", "anna")


def evicted(name: bytes = b"models--acme--old", days: int = 40, size: int = 12 * GIB) -> EvictedEntry:
    """An entry that went, or would go."""
    return EvictedEntry(
        entry=name,
        bytes=size,
        freed_bytes=size,
        reason=EvictReason.OVER_SIZE,
        last_use_ns=NOW - days * DAY,
        last_use_source=LastUseSource.ATIME,
        dev=1,
        ino=2,
        newest_ns=3,
    )


def location(**changes: object) -> LocationReport:
    """A location from which one entry went, and in which two stay."""
    report = LocationReport(
        name="models",
        path=b"/srv/hub",
        layout="hub",
        outcome=Outcome.TRIMMED,
        bytes_before=212 * GIB,
        bytes_after=200 * GIB,
        limit_bytes=200 * GIB,
        target_bytes=180 * GIB,
        need_bytes=32 * GIB,
        evicted=(evicted(),),
        spared=(
            SparedEntry(b"models--acme--served", 10 * GIB, KeepReason.IN_USE, (SERVER,)),
            SparedEntry(b"models--acme--golden", 2 * GIB, KeepReason.PROTECTED),
        ),
    )
    return replace(report, **changes)


def plan(*locations: LocationReport) -> PassReport:
    """A plan over these."""
    return PassReport(locations or (location(),), in_use_checked="proc")


FAILED = FailedEntry(b"models--acme--stuck", 1, b"models--acme--stuck/blobs")


def row(**changes: object) -> Row:
    """An entry that would go first."""
    made = Row(
        spec=SPEC,
        entry=b"models--acme--old",
        paths=(b"models--acme--old",),
        layout="hub",
        kind="repo",
        size=12 * GIB,
        gain_bytes=12 * GIB,
        disk_gain_bytes=12 * GIB,
        files=34,
        owner=4_000_000_000,
        cost=Cost.DOWNLOAD,
        stale=False,
        first_seen_ns=NOW - 90 * DAY,
        last_use_ns=NOW - 40 * DAY,
        last_use_source=LastUseSource.ATIME,
        pin=None,
        reason=EvictReason.OVER_SIZE,
        rank=0,
    )
    return replace(made, **changes)


def explanation(record: Record | None = None, **changes: object) -> Explanation:
    """The explanation of such an entry."""
    return explained(row(**changes), (SERVER,), ("max_size 200 GiB, used 212 GiB",), record)


PIN = Pin(b"/srv/hub/models--acme--old", NOW - DAY, NOW + 3 * DAY, "paper deadline", 4_000_000_000)


def eviction(**changes: object) -> EvictionRow:
    """One that happened two hours ago."""
    made = EvictionRow(
        time_ns=NOW - 2 * HOUR,
        location=SPEC.key,
        name="models",
        path=b"/srv/hub",
        entry=b"models--acme--old",
        bytes=12 * GIB,
        freed_bytes=11 * GIB,
        reason="over_size",
        outcome="removed",
        last_use_ns=NOW - 40 * DAY,
        last_use_source=LastUseSource.ATIME,
    )
    return replace(made, **changes)


def state(**changes: object) -> LocationState:
    """What a pass three minutes ago left."""
    made = LocationState(
        SPEC.key,
        "models",
        b"/srv/hub",
        last_pass_ns=NOW - 3 * MINUTE,
        outcome=Outcome.WITHIN_LIMITS,
        bytes=142 * GIB,
        files=900,
        entries=45,
        limit_bytes=200 * GIB,
        available=True,
        usage_complete=True,
    )
    return replace(made, **changes)


def status(**changes: object) -> Status:
    """One location under a running service; `changes` are those of its state."""
    here = LocationStatus(SPEC, state(**changes), missing=False, next_pass_ns=NOW + 2 * MINUTE)
    return Status(ServiceState(812, NOW - 3 * DAY), [here])
