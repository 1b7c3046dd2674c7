"""Taking entries off the disk so that nobody who uses one ever notices, and putting back what is in use."""

from cachewarden.evict.beside import directories_beside, left_at_the_top
from cachewarden.evict.evictor import Evictor
from cachewarden.evict.naming import TRASH_NAME
from cachewarden.evict.recovery import Fate, Recovered, TrashItem, empty, items, recover, restore
from cachewarden.evict.room import raise_descriptor_limit
from cachewarden.evict.trash import Trash
from cachewarden.evict.victim import Inode, LiveOpeners, NoOpeners, Sight, Surroundings, Victim

__all__ = [
    "TRASH_NAME",
    "Evictor",
    "Fate",
    "Inode",
    "LiveOpeners",
    "NoOpeners",
    "Recovered",
    "Sight",
    "Surroundings",
    "Trash",
    "TrashItem",
    "Victim",
    "directories_beside",
    "empty",
    "items",
    "left_at_the_top",
    "raise_descriptor_limit",
    "recover",
    "restore",
]
