"""Where the links of a hub cache lead, found in their text alone.

No link is followed: the text of `snapshots/COMMIT/FILE` names a blob of the same repository, and a
blob's text may name a payload of the shared store. A link that leads anywhere else is just a link.
"""

from posixpath import normpath


def resolve(directory: bytes, target: bytes) -> bytes | None:
    """The path that a link in `directory` names, relative to the location's root.

    None for an absolute target and for one that climbs out of the location. Text is enough because
    every directory on the way is a real one: the tree opens no other.
    """
    if target.startswith(b"/") or b"\0" in target or not target:
        return None
    path = normpath(directory + b"/" + target)
    return None if path.startswith((b"../", b"/")) or path in (b"..", b".") else path


def tail(target: bytes, count: int) -> tuple[bytes, ...]:
    """The last `count` components of a link's text."""
    return tuple(target.rsplit(b"/", count)[-count:])
