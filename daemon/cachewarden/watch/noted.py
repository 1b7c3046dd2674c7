"""What inotify told of locations since somebody asked last."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

# Beyond so many directories a location counts as changed altogether; see `structure.places.MANY`.
_MANY = 10_000


@dataclass(slots=True)
class Changed:
    """Paths relative to a location: of directories that changed, and of those that came, with all below."""

    directories: set[bytes] = field(default_factory=set)
    came: set[bytes] = field(default_factory=set)


class Noted:
    """By location key; None: not known. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed: dict[str, Changed | None] = {}

    def note(self, key: str, path: bytes, *, came: bool) -> None:
        """A name changed: `path` in a location, `b""` for its root. `came`: a directory has it now."""
        with self._lock:
            changed = self._changed.get(key)
            if changed is None:
                return
            if not path:
                self._changed[key] = None  # the root itself
                return
            changed.directories.add(path.rpartition(b"/")[0])
            if came:
                changed.came.add(path)
            if len(changed.directories) + len(changed.came) > _MANY:
                self._changed[key] = None

    def doubt(self, keys: Iterable[str] | None = None) -> None:
        """Events were lost, or may be: of some locations, or of all."""
        with self._lock:
            for key in set(self._changed) if keys is None else keys:
                self._changed[key] = None

    def forget(self, key: str) -> None:
        """A location is no more."""
        with self._lock:
            self._changed.pop(key, None)

    def take(self, key: str) -> Changed | None:
        """What was noted since the last time."""
        with self._lock:
            found = self._changed.get(key)
            self._changed[key] = Changed()
            return found
