"""Time as an argument: three clocks, injected together.

Only the entry point of a pass reads a clock. Comparing the first two tells a jump of the wall clock from
time that passed. What each is for:

- wall: what is shown and kept, what stamps of files are compared with, quiet hours and cron lines;
- monotonic: how long ago. Intervals, live openers, deadlines. A suspended night is over when it is over;
- awake: how long somebody has been at work, or silent. A pass that a suspended night interrupts did not take
  a night, and did not hang.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """All clocks, in nanoseconds."""

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch; may jump."""

    def monotonic_ns(self) -> int:
        """Nanoseconds of CLOCK_BOOTTIME: never jumps, and goes on while the machine is suspended."""

    def awake_ns(self) -> int:
        """Nanoseconds of CLOCK_MONOTONIC: never jumps, and stands still while the machine is suspended."""


class SystemClock:
    """The machine's clocks."""

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch; may jump."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """CLOCK_BOOTTIME and not CLOCK_MONOTONIC: a suspended night is not a jump of the wall clock."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def awake_ns(self) -> int:
        """CLOCK_MONOTONIC: clock_gettime(2) does not count the time that the machine was suspended."""
        return time.monotonic_ns()


def boot_id() -> str:
    """What tells this boot of the machine from all others: proc_sys_kernel(5), random/boot_id.

    Times of `monotonic_ns`, pids and starts of processes mean something within one boot only.
    """
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


class SetClock:
    """A clock that stands still until it is moved, for tests and simulations."""

    def __init__(self, wall_ns: int = 1_700_000_000 * 10**9, monotonic_ns: int = 10**12) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._suspended_ns = 0

    def wall_ns(self) -> int:
        """The wall time that was set."""
        return self._wall_ns

    def monotonic_ns(self) -> int:
        """The monotonic time that was set."""
        return self._monotonic_ns

    def awake_ns(self) -> int:
        """The monotonic time less what was spent suspended."""
        return self._monotonic_ns - self._suspended_ns

    def advance(self, ns: int) -> None:
        """Let time pass on all clocks."""
        self._wall_ns += ns
        self._monotonic_ns += ns

    def suspend(self, ns: int) -> None:
        """Let the machine sleep for so long."""
        self.advance(ns)
        self._suspended_ns += ns

    def step(self, ns: int) -> None:
        """Let the wall clock jump, forwards or (negative) backwards."""
        self._wall_ns += ns
