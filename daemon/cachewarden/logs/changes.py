"""Saying a thing when it changes, and not in every pass."""

import threading


class Changes:
    """The last known state of things, by key. Safe to use from several threads.

    A location that is short stays short for days: one line when it begins and one when it ends say
    all, where a line per pass would hide everything else.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: dict[object, object] = {}

    def changed(self, key: object, state: object, usual: object = None) -> bool:
        """Whether the state differs from the last one; a key seen first was in the state `usual`."""
        with self._lock:
            before = self._states.get(key, usual)
            self._states[key] = state
            return before != state

    def once(self, key: object) -> bool:
        """True the first time for this key (until it is forgotten), False afterwards."""
        return self.changed(key, True, False)

    def forget(self, key: object) -> None:
        """Take up a key as if it had never been seen."""
        with self._lock:
            self._states.pop(key, None)
