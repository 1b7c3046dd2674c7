"""Which passes are wanted, and when: a set, so that a thousand events make one pass. No clock, no I/O.

A change waits until its location was quiet for `settle`, or has been noisy for ten times that: a
download that writes for an hour must not put off its pass for an hour. And passes that changes ask for
may take a fifth of the time at most: measuring a huge cache for every file that a busy job writes would
cost more than the cache is worth.
"""

import threading
from dataclasses import dataclass

_NOISY = 10  # times settle
_REST = 4  # times the last pass


@dataclass(slots=True)
class _Wish:
    first_ns: int
    last_ns: int
    now: bool = False


class Requests:
    """Wishes by group (one filesystem's worker). All times are monotonic nanoseconds.

    Workers put their wishes in while the main loop takes them out: hence the lock.
    """

    def __init__(self, settle_ns: int) -> None:
        self.settle_ns = settle_ns
        self._lock = threading.Lock()
        self._wishes: dict[str, _Wish] = {}
        self._rest_until: dict[str, int] = {}

    def changed(self, group: str, now_ns: int) -> None:
        """Something changed in a location of the group."""
        with self._lock:
            self._wishes.setdefault(group, _Wish(now_ns, now_ns)).last_ns = now_ns

    def wanted(self, group: str, now_ns: int) -> None:
        """A pass is due, whatever changed."""
        with self._lock:
            self._wishes.setdefault(group, _Wish(now_ns, now_ns)).now = True

    def finished(self, group: str, took_ns: int, now_ns: int) -> None:
        """A pass of the group ended. It was at work for `took_ns`, without what a suspended night took."""
        with self._lock:
            self._rest_until[group] = now_ns + _REST * took_ns

    def take_due(self, now_ns: int) -> list[str]:
        """The groups whose pass is to begin now; they are not wanted any more."""
        with self._lock:
            due = [group for group, wish in self._wishes.items() if self._is_due(group, wish, now_ns)]
            for group in due:
                del self._wishes[group]
        return due

    def forget(self, groups: set[str]) -> None:
        """Drop everything about groups that are not among these."""
        with self._lock:
            for known in (self._wishes, self._rest_until):
                for group in known.keys() - groups:
                    del known[group]

    def _is_due(self, group: str, wish: _Wish, now_ns: int) -> bool:
        if wish.now:
            return True
        if now_ns < self._rest_until.get(group, 0):
            return False
        quiet = now_ns - wish.last_ns >= self.settle_ns
        return quiet or now_ns - wish.first_ns >= _NOISY * self.settle_ns
