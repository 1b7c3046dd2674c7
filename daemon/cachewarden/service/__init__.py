"""The composition root: the only room that knows settings and workers."""

from cachewarden.service.house import House, open_house
from cachewarden.service.keeping import TrashRow
from cachewarden.service.running import run_service
from cachewarden.service.status import LocationStatus, Status

__all__ = ["House", "LocationStatus", "Status", "TrashRow", "open_house", "run_service"]
