"""What Prometheus gets to see. The page is rendered from the last snapshot; a scrape measures nothing.

So a scrape answers at once, whatever hangs, and its cost does not depend on the size of the caches.
"""

from cachewarden.metrics.exporter import CONTENT_TYPE, Metrics
from cachewarden.metrics.figures import (
    FilesystemFigures,
    LocationFigures,
    ServiceFigures,
    Snapshot,
    UserFigures,
)

__all__ = [
    "CONTENT_TYPE",
    "FilesystemFigures",
    "LocationFigures",
    "Metrics",
    "ServiceFigures",
    "Snapshot",
    "UserFigures",
]
