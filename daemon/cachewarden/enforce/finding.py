"""From a path that somebody typed to the entry that it means."""

import os
from collections.abc import Iterator

from cachewarden.errors import UsageError
from cachewarden.inventory import Inventory
from cachewarden.paths import show
from cachewarden.spec import LocationSpec, Territory
from cachewarden.tree import split_path


def location_of(territory: Territory, path: bytes) -> tuple[LocationSpec, bytes]:
    """The location that `path` (absolute) lies in, and the path relative to it.

    Links on the way are resolved, but not the last component: an entry may itself be a link. Raises
    UsageError when no location has it.
    """
    for candidate in _candidates(path):
        for spec in (*territory.locations, *territory.missing):
            if candidate == spec.path or candidate.startswith(spec.path + b"/"):
                return spec, candidate[len(spec.path) + 1 :]
    known = ", ".join(sorted({show(spec.path) for spec in territory.locations})) or "none is configured"
    raise UsageError(f"{show(path)}: not in any location ({known})")


def _candidates(path: bytes) -> Iterator[bytes]:
    """As it stands first: resolving links asks the disk, which may not answer."""
    yield os.path.normpath(path)
    parent, name = os.path.split(path)
    yield os.path.join(os.path.realpath(parent), name)


def entry_at(inventory: Inventory, relative: bytes) -> int | None:
    """The entry that goes by this name, or the innermost one that has this path; None for foreign things.

    A path that several entries lie below (`models--o--m` with two revisions) means none of them.
    """
    owners: dict[bytes, int] = {}
    for index, entry in enumerate(inventory.entries):
        if entry.name == relative:
            return index
        owners.update((path, index) for path in entry.claim.paths)
    while relative:
        if relative in owners:
            return owners[relative]
        relative = split_path(relative)[0]
    return None


def the_entry(inventory: Inventory, relative: bytes, path: bytes) -> int:
    """As `entry_at`; for `path`, which people typed. Raises UsageError that says what is there instead."""
    index = entry_at(inventory, relative)
    if index is not None:
        return index
    below = names_below(inventory, relative)
    names = ", ".join(show(name) for name in below[:10])
    if len(below) == 1:
        raise UsageError(f"{show(path)}: is no entry itself; the one that lies in it is {names}")
    if below:
        raise UsageError(f"{show(path)}: no single entry, but {len(below)} of them: {names}")
    raise UsageError(
        f"{show(path)}: is no entry (layout {inventory.layout}): it is foreign, or not there; what is "
        "foreign is counted and never touched"
    )


def names_below(inventory: Inventory, relative: bytes) -> list[bytes]:
    """Names of the entries that have a path at or below `relative`, for a helpful error."""
    prefix = relative + b"/" if relative else b""
    return [
        entry.name
        for entry in inventory.entries
        if any(path == relative or path.startswith(prefix) for path in entry.claim.paths)
    ]
