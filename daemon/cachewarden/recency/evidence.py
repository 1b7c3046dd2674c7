"""Merging the evidence of an entry's last use: what was recorded, access times, stamps, first seen.

The newest evidence wins; of evidence that is equally new, the most trusted kind names the source.

Times from the future. A stamp at most a day ahead counts as now: a file may be written while the
walk that measures it is under way, and file servers and clients disagree about the time. It lies in
the past soon. A stamp further ahead was set by hand or by a wrong clock; it says nothing about use,
and clamping it to now in every pass would keep its entry the youngest of all for years. It does not
count, the other evidence does, and `first_seen` is always there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from cachewarden.inventory import Measure
from cachewarden_policies.policy import DAY, MINUTE
from cachewarden_policies.reasons import LastUseSource

AtimeMode = Literal["strictatime", "relatime", "noatime"]

FUTURE_TOLERANCE = DAY
# Below this a stamp ahead of now is ordinary (see above) and not worth a line in the log.
_REMARKABLE = MINUTE

# What was recorded of these kinds cannot be seen again; stamps can, and a recorded stamp would
# outlive the ctime that a later `ignore_ctime = true` says to disregard.
_WORTH_RECORDING = frozenset({LastUseSource.OPENS, LastUseSource.ATIME, LastUseSource.RELATIME})

# relatime moves an access time only when it is older than a day, or not newer than the last change
# (mount(8), kernel 2.6.30): the entry was used then, and perhaps again within the 24 hours after.
# The value is taken as it is. Counting the end of those hours instead would make everything that
# was written today "used just now", and min_idle would guard a whole day's downloads.
_ATIME_SOURCE = {"strictatime": LastUseSource.ATIME, "relatime": LastUseSource.RELATIME}


class Known(Protocol):
    """What is remembered of an entry; a record of the ledger has this shape.

    `appeared`: it was not there when its location was scanned for the first time, so that
    `first_seen_ns` is a birthday and not only the day on which we came.
    """

    @property
    def first_seen_ns(self) -> int:
        """When it was seen first."""

    @property
    def appeared(self) -> bool:
        """Whether it came while its location was known."""

    @property
    def last_use_ns(self) -> int | None:
        """The newest use on record, or None."""

    @property
    def last_use_source(self) -> LastUseSource | None:
        """Where that use was seen."""

    @property
    def passing(self) -> tuple[int, int, int] | None:
        """Access times from the first to the second moment may be those of programs that do not count;
        the third is the access time before that. None: no such program was seen."""


@dataclass(frozen=True, slots=True)
class LastUse:
    """An entry's last use. `future`: one of its stamps lay more than a minute ahead of now."""

    ns: int
    source: LastUseSource
    future: bool = False


def last_use(
    measure: Measure,
    known: Known,
    *,
    atime_mode: AtimeMode,
    ignore_ctime: bool,
    now_ns: int,
) -> LastUse:
    """The newest trustworthy sign that somebody used the entry; never later than `now_ns`.

    An entry that appeared while its location was known is never older than that, whatever its
    stamps say: an unpacked archive brings the stamps of its making along.
    """
    stamps = _stamps(measure, ignore_ctime)
    evidence = [(stamp, LastUseSource.STAMPS) for stamp in stamps]
    # With no file in it, the measured access time is a directory's, and every listing moves those.
    if atime_mode != "noatime" and measure.files:
        evidence.append((_honest(measure.atime_ns, known.passing), _ATIME_SOURCE[atime_mode]))
    if known.last_use_ns is not None and known.last_use_source in _WORTH_RECORDING:
        evidence.append((known.last_use_ns, known.last_use_source))
    usable = [(min(ns, now_ns), source) for ns, source in evidence if _usable(ns, now_ns)]
    if known.appeared or not usable:
        usable.append((min(known.first_seen_ns, now_ns), LastUseSource.FIRST_SEEN))
    ns, source = max(usable, key=lambda sign: (sign[0], -_trust(sign[1])))
    return LastUse(ns, source, any(ns > now_ns + _REMARKABLE for ns, _ in evidence))


def _honest(atime_ns: int, passing: tuple[int, int, int] | None) -> int:
    """The newest access time that may be a use. Reads of an indexer move it for all entries alike; who
    read an entry beside it was seen opening it."""
    if passing is not None and passing[0] <= atime_ns <= passing[1]:
        return passing[2]
    return atime_ns


def changed_ns(measure: Measure, *, ignore_ctime: bool, now_ns: int) -> int:
    """The newest believable mtime or ctime of the entry's files (mtime alone with `ignore_ctime`).

    0 when every stamp lies in the far future: age then counts from first seen alone.
    """
    return max((min(ns, now_ns) for ns in _stamps(measure, ignore_ctime) if _usable(ns, now_ns)), default=0)


def _stamps(measure: Measure, ignore_ctime: bool) -> Iterable[int]:
    return (measure.mtime_ns,) if ignore_ctime else (measure.mtime_ns, measure.ctime_ns)


def _usable(ns: int, now_ns: int) -> bool:
    # 0 is what a measure of nothing has, and a stamp of 1970 proves nothing either.
    return 0 < ns <= now_ns + FUTURE_TOLERANCE


def _trust(source: LastUseSource) -> int:
    return list(LastUseSource).index(source)
