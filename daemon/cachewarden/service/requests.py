"""Which passes are wanted, and when: a set, so that a thousand events make one pass. No clock, no I/O.

A change waits until its location was quiet for `settle`, or has been noisy for ten times that: a
download that writes for an hour must not put off its pass for an hour. And passes that changes ask for
may take a fifth of the time at most: measuring a huge cache for every file that a busy job writes would
cost more than the cache is worth. What a pass took that was wanted for another reason does not count.
"""

import threading
from collections.abc import Collection
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

    Workers and readers of events put wishes in while the main loop takes them out: hence the lock.
    """

    def __init__(self, settle_ns: int) -> None:
        self.settle_ns = settle_ns
        self._lock = threading.Lock()
        self._wishes: dict[str, _Wish] = {}
        self._rest_until: dict[str, int] = {}
        self._wanted: set[str] = set()  # whose last pass was wanted, whatever changed

    def changed(self, group: str, now_ns: int) -> bool:
        """Something changed in a location of the group; whether that is the first wish of a pass."""
        with self._lock:
            first = group not in self._wishes
            self._wishes.setdefault(group, _Wish(now_ns, now_ns)).last_ns = now_ns
            return first

    def wanted(self, group: str, now_ns: int) -> None:
        """A pass is due, whatever changed."""
        with self._lock:
            self._wishes.setdefault(group, _Wish(now_ns, now_ns)).now = True

    def finished(self, group: str, took_ns: int, now_ns: int) -> None:
        """A pass of the group ended. It was at work for `took_ns`, without what a suspended night took."""
        with self._lock:
            self._rest_until[group] = now_ns + (0 if group in self._wanted else _REST * took_ns)

    def take_due(self, now_ns: int, busy: Collection[str] = ()) -> list[str]:
        """The groups whose pass is to begin now; they are not wanted any more. Those in `busy` wait."""
        with self._lock:
            due = [
                group
                for group, wish in self._wishes.items()
                if group not in busy and self._due_ns(group, wish) <= now_ns
            ]
            for group in due:
                (self._wanted.add if self._wishes.pop(group).now else self._wanted.discard)(group)
        return due

    def next_ns(self, busy: Collection[str] = ()) -> int | None:
        """When a pass will be due, if nothing else happens until then; None: there is no wish."""
        with self._lock:
            due = [self._due_ns(group, wish) for group, wish in self._wishes.items() if group not in busy]
            return min(due, default=None)

    def forget(self, groups: set[str]) -> None:
        """Drop everything about groups that are not among these."""
        with self._lock:
            for known in (self._wishes, self._rest_until):
                for group in known.keys() - groups:
                    del known[group]
            self._wanted &= groups

    def _due_ns(self, group: str, wish: _Wish) -> int:
        if wish.now:
            return 0
        settled = min(wish.last_ns + self.settle_ns, wish.first_ns + _NOISY * self.settle_ns)
        return max(settled, self._rest_until.get(group, 0))
