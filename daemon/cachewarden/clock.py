"""Time as an argument: the wall clock and the monotonic clock, injected together.

Only the entry point of a pass reads a clock. Comparing the two tells a jump of the wall clock from
time that passed.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Both clocks, in nanoseconds."""

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch; may jump."""

    def monotonic_ns(self) -> int:
        """Nanoseconds of CLOCK_BOOTTIME: never jumps, and goes on while the machine is suspended."""


class SystemClock:
    """The machine's clocks."""

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch; may jump."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """CLOCK_BOOTTIME and not CLOCK_MONOTONIC: a suspended night is not a jump of the wall clock."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class SetClock:
    """A clock that stands still until it is moved, for tests and simulations."""

    def __init__(self, wall_ns: int = 1_700_000_000 * 10**9, monotonic_ns: int = 10**12) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns

    def wall_ns(self) -> int:
        """The wall time that was set."""
        return self._wall_ns

    def monotonic_ns(self) -> int:
        """The monotonic time that was set."""
        return self._monotonic_ns

    def advance(self, ns: int) -> None:
        """Let time pass on both clocks."""
        self._wall_ns += ns
        self._monotonic_ns += ns

    def step(self, ns: int) -> None:
        """Let the wall clock jump, forwards or (negative) backwards."""
        self._wall_ns += ns
