"""Saying a thing when it changes, and not in every pass."""

import threading
from collections import OrderedDict

_MOST = 50_000  # keys; those that were asked for longest ago are forgotten


class Changes:
    """The last known state of things, by key. Safe to use from several threads.

    A location that is short stays short for days: one line when it begins and one when it ends say
    all, where a line per pass would hide everything else.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: OrderedDict[object, object] = OrderedDict()

    def changed(self, key: object, state: object, usual: object = None) -> bool:
        """Whether the state differs from the last one; a key seen first was in the state `usual`."""
        with self._lock:
            before = self._states.get(key, usual)
            self._keep(key, state)
            return before != state

    def once(self, key: object) -> bool:
        """True the first time for this key (until it is forgotten), False afterwards."""
        return self.changed(key, True, False)

    def news(self, key: object, now_ns: int, gap_ns: int) -> bool:
        """True when the key was not seen for so long; being asked about it is seeing it.

        For what comes and goes from pass to pass: an entry that is open in every other pass is no news.
        """
        with self._lock:
            seen_ns = self._states.get(key)
            self._keep(key, now_ns)
            return not isinstance(seen_ns, int) or now_ns - seen_ns >= gap_ns

    def forget(self, key: object) -> None:
        """Take up a key as if it had never been seen."""
        with self._lock:
            self._states.pop(key, None)

    def _keep(self, key: object, state: object) -> None:
        self._states[key] = state
        self._states.move_to_end(key)
        if len(self._states) > _MOST:
            self._states.popitem(last=False)
