"""Does something hide the caches, or the processes that use them, from this very service?

A unit that was hardened too far (ProtectHome, PrivateTmp, ProtectProc, a capability less) makes caches look
empty, or idle. Then nothing may be evicted, and people have to be told why.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from cachewarden.kernel import capabilities
from cachewarden.paths import show

# Without one of these, what cannot be seen looks unused. The others have weaker forms, which `doctor` names.
_NEEDED = ("CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_LEASE", "CAP_SYS_PTRACE")
_FIRST = b"/proc/1/root"
_ALL_USERS = ["0", "0", "4294967295"]  # user_namespaces(7): each uid is itself


def blinds() -> list[str]:
    """What hides processes and users, in sentences. For a service that runs as root."""
    found = []
    missing = [name for name in _NEEDED if name not in capabilities.effective()]
    if missing:
        found.append(f"the service lacks {', '.join(missing)}: its unit drops more than it may")
    if "1" not in os.listdir("/proc"):
        found.append("other processes are hidden from the service (ProtectProc, hidepid): all looks unused")
    with open("/proc/self/uid_map", encoding="ascii") as uid_map:
        if uid_map.read().split() != _ALL_USERS:
            found.append("the service sees other users than there are (PrivateUsers)")
    return found


def hidden(patterns: Iterable[bytes]) -> list[str]:
    """The directories of location patterns that are not what the machine's first process sees there.

    Blocks where the filesystem does not answer.
    """
    places = sorted({_fixed_part(pattern) for pattern in patterns})
    return [
        f"{show(place)} is hidden from the service: the machine has another directory there "
        "(ProtectHome, PrivateTmp, InaccessiblePaths …)"
        for place in places
        if _differs(place)
    ]


def _fixed_part(pattern: bytes) -> bytes:
    """The longest directory of a pattern that names no unknown."""
    return b"/" + b"/".join(_parts(pattern))


def _parts(pattern: bytes) -> Iterator[bytes]:
    for part in pattern.strip(b"/").split(b"/"):
        if any(sign in part for sign in (b"*", b"?", b"[")):
            return
        yield part


def _differs(place: bytes) -> bool:
    with suppress(OSError):  # not there outside either, or not to be seen, which `blinds` tells
        theirs = os.stat(_FIRST + place)
        try:
            ours = os.stat(place)
        except OSError:
            return True
        return (ours.st_dev, ours.st_ino) != (theirs.st_dev, theirs.st_ino)
    return False
