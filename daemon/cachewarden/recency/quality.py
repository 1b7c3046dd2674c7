"""How good our knowledge of last use is, of a location and of an entry; and when to wait for better."""

from enum import Enum
from typing import Literal

from cachewarden.recency.evidence import AtimeMode
from cachewarden_policies.reasons import LastUseSource

RecencySource = Literal["opens", "atime", "relatime", "stamps"]

# Who saw an open; the packages that see them write these words into the ledger.
SEEN_BY_FANOTIFY = "fanotify"
SEEN_BY_SAMPLES = "proc"


class Confidence(Enum):
    """How far a last use can be trusted, and why not further."""

    EXACT = "exact"
    SAMPLED = "sampled"
    READ = "read"
    DAY = "day"
    WRITTEN = "written"
    APPEARED = "appeared"

    @property
    def sentence(self) -> str:
        """For people."""
        return _SENTENCES[self]


_SENTENCES = {
    Confidence.EXACT: "every open is seen while the service runs",
    Confidence.SAMPLED: "it may have been used since: who opens and closes between two samples is missed",
    Confidence.READ: "to the second, but whoever it was: a backup or an indexer reads too",
    Confidence.DAY: "it may have been used for a day since, and it may have been a backup or an indexer",
    Confidence.WRITTEN: "reads do not show in that, so that it may have been used at any time since",
    Confidence.APPEARED: "it may have been used at any time since",
}


def confidence(source: LastUseSource, seen_by: str | None) -> Confidence:
    """How far a last use from this source can be trusted; `seen_by` as it is recorded with an open."""
    if source is LastUseSource.OPENS:
        return Confidence.SAMPLED if seen_by == SEEN_BY_SAMPLES else Confidence.EXACT
    return {
        LastUseSource.ATIME: Confidence.READ,
        LastUseSource.RELATIME: Confidence.DAY,
        LastUseSource.STAMPS: Confidence.WRITTEN,
        LastUseSource.FIRST_SEEN: Confidence.APPEARED,
    }[source]


def atime_usable(mode: AtimeMode) -> bool:
    """Whether the mount moves access times at all (relatime: once a day)."""
    return mode != "noatime"


def recency_source(mode: AtimeMode, *, opens_available: bool) -> RecencySource:
    """The best source of last use that a location has.

    `stamps` means that reads are not seen: "least recently used" is then "least recently written".
    """
    if opens_available:
        return "opens"
    if mode == "noatime":
        return "stamps"
    return "atime" if mode == "strictatime" else "relatime"


def learning(first_scan_ns: int | None, learn_ns: int, mode: AtimeMode, now_ns: int) -> bool:
    """Whether a location without honest access times has been known for less than `learn`.

    `first_scan_ns` is None before the first scan. A first scan in the future (a clock was wrong)
    counts as not long ago: unknown means wait.
    """
    if atime_usable(mode) or learn_ns <= 0:
        return False
    return first_scan_ns is None or now_ns - first_scan_ns < learn_ns
