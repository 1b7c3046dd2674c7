"""When was an entry used last, and how do we know? Pure: values in, values out, `now` is an argument."""

from cachewarden.recency.evidence import (
    FUTURE_TOLERANCE,
    AtimeMode,
    Known,
    LastUse,
    changed_ns,
    last_use,
)
from cachewarden.recency.quality import (
    SEEN_BY_FANOTIFY,
    SEEN_BY_SAMPLES,
    Confidence,
    RecencySource,
    atime_usable,
    confidence,
    learning,
    recency_source,
)

__all__ = [
    "FUTURE_TOLERANCE",
    "SEEN_BY_FANOTIFY",
    "SEEN_BY_SAMPLES",
    "AtimeMode",
    "Confidence",
    "Known",
    "LastUse",
    "RecencySource",
    "atime_usable",
    "changed_ns",
    "confidence",
    "last_use",
    "learning",
    "recency_source",
]
