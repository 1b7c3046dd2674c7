"""What live processes say of caches: their environments, and where they work.

Only variables of the table are kept (`Environment.of`); everything else that an environment holds, keys
and passwords among it, is dropped where it is read.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from cachewarden.discover.environments import Environment
from cachewarden.mountinfo import Mount, own_mounts, parse, relative, resolve

_MOST = 2**20  # bytes of one environment
_MOST_PLACES = 20_000  # working directories and what is above them


@dataclass(frozen=True, slots=True)
class Lens:
    """How a process's paths are seen from here. `table` are its mounts, None where it sees what we see."""

    table: tuple[Mount, ...] | None = None
    ours: tuple[Mount, ...] = ()

    def here(self, path: bytes) -> bytes | None:
        """Where a path of the process is for us; None where we have no name for it.

        What is a container's own is left out: it goes with the container.
        """
        if self.table is None:
            return path
        for device, inside in resolve(self.table, path):
            if (device, inside) in resolve(self.ours, path):
                return path
            for mount in self.ours:
                rest = relative(inside, mount.root)
                if mount.major_minor != device or rest is None or mount.fstype == b"overlay":
                    continue
                found = os.path.join(mount.point, rest) if rest else mount.point
                # Something else may be mounted over it.
                if (device, inside) in resolve(self.ours, found):
                    return found
        return None


@dataclass(slots=True)
class Live:
    """What was read. `unread` counts processes whose environment we may not see."""

    environments: dict[Environment, Lens] = field(default_factory=dict)
    workplaces: set[bytes] = field(default_factory=set)
    unread: int = 0


def live(uid: int | None = None, proc: str = "/proc") -> Live:
    """Look at all processes, or at those of one user. Raises OSError without /proc."""
    found = Live()
    views: dict[tuple[int, ...] | None, Lens] = {_view(f"{proc}/self"): Lens()}
    ours = own_mounts()
    for pid in os.listdir(proc):
        if pid.isdigit() and _belongs(f"{proc}/{pid}", uid):
            _process(f"{proc}/{pid}", found, views, ours)
    return found


def _belongs(directory: str, uid: int | None) -> bool:
    try:
        return uid is None or os.stat(directory).st_uid == uid
    except OSError:
        return False


def _process(
    directory: str, found: Live, views: dict[tuple[int, ...] | None, Lens], ours: Sequence[Mount]
) -> None:
    try:
        with open(f"{directory}/environ", "rb") as file:
            content = file.read(_MOST)
    except PermissionError:
        found.unread += 1
        return
    except OSError:
        return  # it ended
    with suppress(OSError, ValueError):
        view = _view(directory)
        if view not in views:
            with open(f"{directory}/mountinfo", "rb") as text:
                views[view] = Lens(parse(text.read()), tuple(ours))
        lens = views[view]
        environment = Environment.of(_pairs(content))
        if environment is not None:
            found.environments.setdefault(environment, lens)
        if lens.table is None and len(found.workplaces) < _MOST_PLACES:
            found.workplaces |= set(_upwards(os.readlink(os.fsencode(f"{directory}/cwd"))))


def _pairs(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    for each in content.split(b"\0"):
        name, equals, value = each.partition(b"=")
        if equals:
            yield name, value


def _view(directory: str) -> tuple[int, ...]:
    """Which mount namespace a process is in, and the root that it sees of it. Raises OSError."""
    namespace, root = os.stat(f"{directory}/ns/mnt"), os.stat(f"{directory}/root")
    return namespace.st_dev, namespace.st_ino, root.st_dev, root.st_ino


def _upwards(path: bytes) -> Iterator[bytes]:
    """A working directory and everything above it; nothing for one that was removed."""
    if not path.startswith(b"/") or path.endswith(b" (deleted)"):
        return
    while True:
        yield path
        if path == b"/":
            return
        path = os.path.dirname(path)
