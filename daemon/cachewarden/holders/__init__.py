"""Who stands in a directory, what is mounted where, and who that is, for people."""

from cachewarden.holders.ghosts import deleted_open
from cachewarden.holders.machine import Machine
from cachewarden.holders.processes import Inode, Snapshot, Standing, snapshot
from cachewarden.holders.users import who
from cachewarden.holders.uses import Uses, sees_all_processes, uses

__all__ = [
    "Inode",
    "Machine",
    "Snapshot",
    "Standing",
    "Uses",
    "deleted_open",
    "sees_all_processes",
    "snapshot",
    "uses",
    "who",
]
