"""How good our knowledge of last use is in a location: what the metrics say, and when to wait."""

from typing import Literal

from cachewarden.recency.evidence import AtimeMode

RecencySource = Literal["opens", "atime", "relatime", "stamps"]


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
