"""The other end of the control socket: how commands ask the running service."""

from cachewarden.client.asking import CONTROL_NAME, Service, connect

__all__ = ["CONTROL_NAME", "Service", "connect"]
