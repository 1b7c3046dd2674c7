"""When was an entry used last, and how do we know? Pure: values in, values out, `now` is an argument."""

from cachewarden.recency.evidence import (
    FUTURE_TOLERANCE,
    AtimeMode,
    Known,
    LastUse,
    changed_ns,
    last_use,
)
from cachewarden.recency.quality import RecencySource, atime_usable, learning, recency_source

__all__ = [
    "FUTURE_TOLERANCE",
    "AtimeMode",
    "Known",
    "LastUse",
    "RecencySource",
    "atime_usable",
    "changed_ns",
    "last_use",
    "learning",
    "recency_source",
]
