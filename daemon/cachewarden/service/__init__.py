"""The composition root: the only room that knows settings and workers."""

from cachewarden.service.house import House, open_house

__all__ = ["House", "open_house"]
