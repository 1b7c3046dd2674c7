"""The composition root: the only room that knows settings and workers.

`running.run_service` is not imported here: it brings servers and schedulers along, and a command that only
looks should not wait for them.
"""

from cachewarden.service.house import House
from cachewarden.service.keeping import TrashRow
from cachewarden.service.opening import needs_service, open_house, runtime_dir
from cachewarden.service.status import LocationStatus, Status

__all__ = ["House", "LocationStatus", "Status", "TrashRow", "needs_service", "open_house", "runtime_dir"]
