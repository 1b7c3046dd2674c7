"""What an enforcer keeps in memory between passes: pool members of other threads, disks that gave nothing."""

import threading
from collections.abc import Collection
from dataclasses import replace

from cachewarden_policies.situation import Filesystem, Location

_MOVED = 1 << 20  # bytes more available than when evicting gave nothing back: worth another try


class Between:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locations: dict[str, Location] = {}
        self._gave_nothing: dict[str, int] = {}

    def keep(self, location: Location) -> None:
        """How a location is now; a pool is planned over all its members, also those of other passes."""
        with self._lock:
            self._locations[location.key] = location

    def drop(self, key: str) -> None:
        """A location cannot be looked at: what was known of it helps nobody."""
        with self._lock:
            self._locations.pop(key, None)

    def others(self, keys: Collection[str]) -> list[Location]:
        """What is known of these locations."""
        with self._lock:
            return [self._locations[key] for key in sorted(keys) if key in self._locations]

    def judged(self, filesystem: Filesystem) -> Filesystem:
        """The filesystem, `futile` while it has no more room than when evicting gave nothing back.

        What somebody asks for by hand is tried all the same.
        """
        with self._lock:
            then = self._gave_nothing.get(filesystem.name)
            if then is None or filesystem.requested_free:
                return filesystem
            if filesystem.avail_bytes > then + _MOVED:
                del self._gave_nothing[filesystem.name]
                return filesystem
        return replace(filesystem, futile=True)

    def learn(self, filesystems: Collection[Filesystem]) -> None:
        """After a pass: which filesystems gave nothing back."""
        with self._lock:
            for each in filesystems:
                if each.futile:
                    self._gave_nothing.setdefault(each.name, each.avail_bytes)
