"""Which mounts there are: our own table, and what every mount namespace has mounted where."""

from cachewarden.mountinfo.namespaces import (
    ForeignMounts,
    busy_below,
    foreign_mounts,
    place_of,
    places,
    resolve,
)
from cachewarden.mountinfo.table import (
    AtimeMode,
    Mount,
    atime_mode,
    is_network_or_unknown,
    mount_of,
    own_mounts,
    parse,
    relative,
    unescape,
)

__all__ = [
    "AtimeMode",
    "ForeignMounts",
    "Mount",
    "atime_mode",
    "busy_below",
    "foreign_mounts",
    "is_network_or_unknown",
    "mount_of",
    "own_mounts",
    "parse",
    "place_of",
    "places",
    "relative",
    "resolve",
    "unescape",
]
