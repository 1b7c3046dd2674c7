"""Configuration: from TOML files and the environment to checked values, and to the locations in force."""

from cachewarden.settings.find import Matches
from cachewarden.settings.listing import schema, show
from cachewarden.settings.load import load
from cachewarden.settings.places import account_homes, home_directories
from cachewarden.settings.rewriting import rewrite
from cachewarden.settings.switching import Change, Edit, Switch, switch
from cachewarden.settings.territory import assemble, find_location, territory, watch_roots
from cachewarden.settings.values import DaemonSettings, LocationPattern, Settings

__all__ = [
    "Change",
    "DaemonSettings",
    "Edit",
    "LocationPattern",
    "Matches",
    "Settings",
    "Switch",
    "account_homes",
    "assemble",
    "find_location",
    "home_directories",
    "load",
    "rewrite",
    "schema",
    "show",
    "switch",
    "territory",
    "watch_roots",
]
