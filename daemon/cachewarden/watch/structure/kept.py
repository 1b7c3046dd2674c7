"""What must outlive a restart beside the groups themselves: changes that were read and not asked for yet.

The groups go through the service manager's descriptor store, and what changes while nobody reads waits in
their queues. What an earlier process of ours had read of them already is in a file in the state directory,
written when it left in good order. After any other end there is no such file, and nothing is known.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cachewarden.ledger.files import write_atomically
from cachewarden.watch.structure.books import Place

NAME = b"structure.json"
_VERSION = 1

Places = Mapping[str, Place]


def keep(directory: bytes, channels: Mapping[str, Places]) -> None:
    """Write what channels know, by label. Raises OSError."""
    content = {
        "version": _VERSION,
        "channels": {
            label: {key: _shown(place) for key, place in places.items()} for label, places in channels.items()
        },
    }
    write_atomically(directory, NAME, json.dumps(content).encode())


def take_kept(directory: bytes) -> dict[str, Places]:
    """What was written, once: the file is gone afterwards, and not there after the next crash.

    Empty when there is none, or one that cannot be read or removed. Raises nothing.
    """
    path = os.path.join(directory, NAME)
    try:
        with open(path, "rb") as file:
            os.unlink(path)
            found = json.loads(file.read())
        if found["version"] != _VERSION:
            return {}
        return {
            label: {key: _read(place) for key, place in places.items()}
            for label, places in found["channels"].items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        with suppress(OSError):
            os.unlink(path)
        return {}


def _shown(place: Place) -> Mapping[str, Any]:
    dirty = place.dirty
    return {
        "path": place.path.hex(),
        "root": place.root,
        "handle": place.handle.hex(),
        "dirty": {handle.hex(): moved for handle, moved in dirty.items()} if dirty is not None else None,
    }


def _read(shown: Mapping[str, Any]) -> Place:
    device, inode = shown["root"]
    dirty = shown["dirty"]
    return Place(
        bytes.fromhex(shown["path"]),
        (int(device), int(inode)),
        bytes.fromhex(shown["handle"]),
        {bytes.fromhex(handle): bool(moved) for handle, moved in dirty.items()}
        if dirty is not None
        else None,
    )
