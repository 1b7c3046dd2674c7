"""Which locations are in force now, found by a thread for each configured pattern.

A pattern may lead to a mount that does not answer. Its thread then hangs, alone, and is not started
again while it does: what that pattern matched before stays in force, and everything else goes on.
"""

import threading
from collections.abc import Callable, Collection

from cachewarden.service.blinding import hidden
from cachewarden.settings import (
    LocationPattern,
    Matches,
    Settings,
    account_homes,
    assemble,
    find_location,
    home_directories,
)
from cachewarden.spec import Territory

_HOMES_SECONDS = 1.0  # they take a millisecond, unless the directory around one hangs


class Lookout:
    """Keeps the territory of the configuration that it follows. Its methods are the main loop's alone.

    `watch(name, directories)` is told, in the pattern's own thread, where a new match of it may appear.
    `news` is called there when a pattern does not find the same as before. A command that looks once needs
    neither.
    """

    def __init__(
        self,
        settings: Settings,
        watch: Callable[[str, Collection[bytes]], None] = lambda _, __: None,
        news: Callable[[], None] = lambda: None,
    ) -> None:
        self._watch = watch
        self._news = news
        self._known: Territory | None = None
        self._lock = threading.Lock()
        # By name and patterns: a reload starts no second look for one that hangs, unless it looks elsewhere.
        self._looking: dict[tuple[str, tuple[bytes, ...]], threading.Thread] = {}
        self._homing: threading.Thread | None = None
        self._hidden: dict[str, list[str]] = {}
        self.follow(settings)

    def follow(self, settings: Settings) -> None:
        """Look for the locations of these settings from here on; what is in force stays so until then."""
        with self._lock:
            self._settings = settings
            self._homes = account_homes(settings.home)
            self._found: dict[str, Matches] = {}
            # What was hidden is so until it was looked at again: meanwhile, passes begin.
            names = {each.name for each in settings.locations}
            self._hidden = {name: told for name, told in self._hidden.items() if name in names}
            homing = self._homing
            if homing is None or not homing.is_alive():
                homing = self._homing = threading.Thread(target=self._find_homes, name="homes", daemon=True)
                homing.start()
        homing.join(_HOMES_SECONDS)

    def look(self, wait_seconds: float = 0.0) -> Territory:
        """Look at all patterns; those that answer within `wait_seconds` count in what is returned."""
        threads = []
        for pattern in self._settings.locations:
            place = pattern.name, pattern.patterns
            thread = self._looking.get(place)
            if thread is None or not thread.is_alive():
                thread = threading.Thread(target=self._find, args=(pattern,), name="lookout", daemon=True)
                self._looking[place] = thread
                thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join(wait_seconds / len(threads))
        self._looking = {place: thread for place, thread in self._looking.items() if thread.is_alive()}
        with self._lock:
            found = dict(self._found)
        self._known = assemble(self._settings, found, self._known)
        return self._known

    @property
    def hung(self) -> list[str]:
        """Names of the locations whose filesystem does not answer."""
        return sorted({name for (name, _), thread in self._looking.items() if thread.is_alive()})

    @property
    def hidden(self) -> list[str]:
        """Sentences on places that something hides from this process; none for a user's own service."""
        with self._lock:
            return sorted({sentence for found in self._hidden.values() for sentence in found})

    def _find_homes(self) -> None:
        """Until they are found, homes are known as the account database writes them, links and all."""
        while True:
            settings = self._settings
            homes = home_directories(settings.home)
            with self._lock:
                if settings is self._settings:
                    self._homes, self._homing = homes, None
                    return

    def _find(self, pattern: LocationPattern) -> None:
        found = find_location(pattern, self._homes)
        concealed = [] if self._settings.daemon.user_mode else hidden(pattern.patterns)
        with self._lock:
            if not any(each is pattern for each in self._settings.locations):
                return  # it hung, or took its time, while the configuration changed
            before = self._found.get(pattern.name)
            self._found[pattern.name] = found
            self._hidden[pattern.name] = concealed
        if found != before:
            self._news()
        self._watch(pattern.name, found.watch)
