"""Seeing what is opened, by whom: fanotify(7) in file handle mode, Linux 5.9, CAP_SYS_ADMIN."""

from cachewarden.kernel.fanotify.events import NO_PIDFD, OPEN, Q_OVERFLOW, Event, parse
from cachewarden.kernel.fanotify.features import Features, detect
from cachewarden.kernel.fanotify.group import ON_CHILD, Group, Kind, Scope, is_group_of

__all__ = [
    "NO_PIDFD",
    "ON_CHILD",
    "OPEN",
    "Q_OVERFLOW",
    "Event",
    "Features",
    "Group",
    "Kind",
    "Scope",
    "detect",
    "is_group_of",
    "parse",
]
