"""Times in a histogram that a process shares with its forks: eight steps for each power of two.

Standard library only, and little of it: the programs of the hammer import it without `site`.
"""

import mmap

_STEPS = 8
_SLOTS = 64 * _STEPS


class Waits:
    """Nanoseconds, counted in memory that forks write to as well; one writer at a time."""

    def __init__(self) -> None:
        self._slots = memoryview(mmap.mmap(-1, 8 * (_SLOTS + 1))).cast("Q")

    def add(self, ns: int) -> None:
        """Count one time."""
        self._slots[slot(ns)] += 1
        self._slots[_SLOTS] = max(self._slots[_SLOTS], ns)

    def take_in(self, told: dict) -> None:
        """Add what another one counted (`as_told`)."""
        for index, count in told["counts"].items():
            self._slots[int(index)] += count
        self._slots[_SLOTS] = max(self._slots[_SLOTS], told["longest"])

    def as_told(self) -> dict:
        """What goes through JSON."""
        counts = {index: count for index, count in enumerate(self._slots[:_SLOTS]) if count}
        return {"counts": counts, "longest": self.longest}

    @property
    def longest(self) -> int:
        """The longest time of all."""
        return self._slots[_SLOTS]

    @property
    def count(self) -> int:
        """How many were counted."""
        return sum(self._slots[:_SLOTS])

    def quantile(self, share: float) -> int:
        """The time that this share of all did not exceed, rounded up by 12 % at most."""
        left = share * self.count
        for index, count in enumerate(self._slots[:_SLOTS]):
            left -= count
            if count and left <= 0:
                return min(above(index), self.longest)
        return 0


def slot(ns: int) -> int:
    """Where a time is counted."""
    if ns < _STEPS:
        return max(ns, 0)
    power = ns.bit_length() - 4
    return (power + 1) * _STEPS + (ns >> power) - _STEPS


def above(index: int) -> int:
    """The upper end of a slot."""
    if index < _STEPS:
        return index
    power, step = divmod(index, _STEPS)
    return (step + 1 + _STEPS) << (power - 1)
