"""The control socket's side of the service: who may ask what, and the answers."""

from cachewarden.service.control.desk import Desk
from cachewarden.service.control.guest import Host

__all__ = ["Desk", "Host"]
