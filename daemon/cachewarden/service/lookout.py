"""Which locations are in force now, found by a thread for each configured pattern.

A pattern may lead to a mount that does not answer. Its thread then hangs, alone, and is not started
again while it does: what that pattern matched before stays in force, and everything else goes on.
"""

import threading

from cachewarden.service.blinding import hidden
from cachewarden.settings import LocationPattern, Matches, Settings, assemble, find_location, home_directories
from cachewarden.spec import Territory


class Lookout:
    """Keeps the territory of one configuration. Its methods are called by the main loop alone."""

    def __init__(self, settings: Settings, known: Territory | None = None) -> None:
        self._settings = settings
        self._homes = home_directories(settings.home)
        self._known = known
        self._lock = threading.Lock()
        self._found: dict[str, Matches] = {}
        self._looking: dict[str, threading.Thread] = {}
        self._hidden: dict[str, list[str]] = {}

    def look(self, wait_seconds: float = 0.0) -> Territory:
        """Look at all patterns; those that answer within `wait_seconds` count in what is returned."""
        for pattern in self._settings.locations:
            if pattern.name in self._looking and self._looking[pattern.name].is_alive():
                continue
            thread = threading.Thread(target=self._find, args=(pattern,), name="lookout", daemon=True)
            self._looking[pattern.name] = thread
            thread.start()
        share = wait_seconds / max(1, len(self._looking))
        for thread in self._looking.values():
            thread.join(share)
        with self._lock:
            found = dict(self._found)
        self._known = assemble(self._settings, found, self._known)
        return self._known

    @property
    def roots(self) -> set[bytes]:
        """The directories in which a new match may appear, as far as they are known."""
        with self._lock:
            return {path for found in self._found.values() for path in found.watch}

    @property
    def hung(self) -> list[str]:
        """Names of the locations whose filesystem does not answer."""
        return [name for name, thread in self._looking.items() if thread.is_alive()]

    @property
    def hidden(self) -> list[str]:
        """Sentences on places that something hides from this process; none for a user's own service."""
        with self._lock:
            return sorted({sentence for found in self._hidden.values() for sentence in found})

    def _find(self, pattern: LocationPattern) -> None:
        found = find_location(pattern, self._homes)
        concealed = [] if self._settings.daemon.user_mode else hidden(pattern.patterns)
        with self._lock:
            self._found[pattern.name] = found
            self._hidden[pattern.name] = concealed
