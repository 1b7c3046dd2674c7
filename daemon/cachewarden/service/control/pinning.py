"""Pins of ordinary users: on what they can read, for a time and up to a size that the policy grants."""

import os
from collections.abc import Iterable, Sequence

from cachewarden.enforce.finding import entry_at
from cachewarden.enforce.survey import Survey
from cachewarden.errors import ServiceRefusedError
from cachewarden.http import Peer
from cachewarden.inventory import Entry
from cachewarden.ledger import Pin, PinStore, covers
from cachewarden.owners import user_name
from cachewarden.paths import show
from cachewarden.report import iso
from cachewarden.service.control.looker import Wanted, readable
from cachewarden.spec import LocationSpec
from cachewarden.units import format_duration, format_size

_MOST = 1000  # pins of one user: their file is read in every pass


def granted_until(spec: LocationSpec, for_ns: int | None, now_ns: int) -> int | None:
    """When a user's pin ends that is asked for so long; None: never. Raises ServiceRefusedError."""
    most = spec.policy.max_pin
    if most == 0:
        raise ServiceRefusedError(f"{spec.name}: users may not pin here (max_pin is 0)")
    if most is None:
        return None if for_ns is None else now_ns + for_ns
    if for_ns is not None and for_ns > most:
        raise ServiceRefusedError(
            f"{spec.name}: users may pin for {format_duration(most)} at most (max_pin), and then anew"
        )
    return now_ns + (most if for_ns is None else for_ns)


def pin_path(survey: Survey, path: bytes) -> bytes:
    """The path that a pin gets: an entry with a name that is no path has one all the same."""
    relative = path[len(survey.spec.path) + 1 :]
    index = entry_at(survey.inventory, relative)
    if index is None:
        return path
    entry = survey.inventory.entries[index]
    if entry.name != relative or relative in entry.claim.paths:
        return path
    return os.path.join(survey.spec.path, entry.claim.paths[0])


def check_pin(survey: Survey, pin: Pin, peer: Peer, store: PinStore, now_ns: int) -> None:
    """Whether this user may set this pin. Raises ServiceRefusedError, PinsUnreadableError.

    Takes as long as the disk: call it where that is allowed.
    """
    spec = survey.spec
    held = _held(survey, [pin])
    root = os.fstat(survey.root_fd)
    paths = {path for entry in held for path in entry.claim.paths}
    paths.add(pin.path[len(spec.path) + 1 :])  # a way through a link leads to nothing of this location
    wanted = Wanted(spec.path, (root.st_dev, root.st_ino), tuple(paths))
    # One answer to both, or a refusal would tell what exists.
    if not held or os.geteuid() != 0 or not readable(peer.uid, peer.gid, peer.groups, wanted):
        raise ServiceRefusedError(f"{show(pin.path)}: there is no entry that you can read", 404)
    mine = [each for each in store.load(now_ns).active(now_ns) if each.uid == peer.uid]
    others = [each for each in mine if each.path != pin.path]
    if len(others) >= _MOST:
        raise ServiceRefusedError(f"you have {len(others)} pins, and that is the most")
    most = spec.policy.max_pinned_size
    if most is None:
        return
    size = sum(entry.measure.bytes for entry in _held(survey, [*others, pin]))
    if size > most:
        raise ServiceRefusedError(
            f"{spec.name}: with this your pins would hold {format_size(size)}; users may pin "
            f"{format_size(most)} (max_pinned_size)"
        )


def pins_json(pins: Iterable[Pin]) -> list[dict[str, object]]:
    """Pins, the one that was set first on top."""
    return [pin_json(each) for each in sorted(pins, key=lambda each: (each.created_ns, each.path))]


def pin_json(pin: Pin) -> dict[str, object]:
    """One pin."""
    return {
        "path": show(pin.path),
        "since": iso(pin.created_ns),
        "until": iso(pin.until_ns),
        "reason": pin.reason,
        "uid": pin.uid,
        "user": user_name(pin.uid),
    }


def _held(survey: Survey, pins: Sequence[Pin]) -> list[Entry]:
    root = survey.spec.path
    return [
        entry
        for entry in survey.inventory.entries
        if any(covers(pin, os.path.join(root, path)) for pin in pins for path in entry.claim.paths)
    ]
