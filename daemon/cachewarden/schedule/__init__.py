"""When a full reconcile is due: at least every `interval`, and at the fixed times of a cron line."""

from cachewarden.schedule.cron import Cron
from cachewarden.schedule.schedule import Schedule

__all__ = ["Cron", "Schedule"]
