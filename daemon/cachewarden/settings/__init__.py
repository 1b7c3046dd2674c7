"""Configuration: from TOML files and the environment to checked values, and to the locations in force."""

from cachewarden.settings.find import Matches
from cachewarden.settings.listing import schema, show
from cachewarden.settings.load import load
from cachewarden.settings.places import home_directories
from cachewarden.settings.territory import assemble, find_location, territory, watch_roots
from cachewarden.settings.values import DaemonSettings, LocationPattern, Settings

__all__ = [
    "DaemonSettings",
    "LocationPattern",
    "Matches",
    "Settings",
    "assemble",
    "find_location",
    "home_directories",
    "load",
    "schema",
    "show",
    "territory",
    "watch_roots",
]
