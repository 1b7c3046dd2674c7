"""Configuration: from TOML files and the environment to checked values, and to the locations in force."""

from cachewarden.settings.listing import schema, show
from cachewarden.settings.load import load
from cachewarden.settings.values import DaemonSettings, LocationPattern, Settings

__all__ = ["DaemonSettings", "LocationPattern", "Settings", "load", "schema", "show"]
