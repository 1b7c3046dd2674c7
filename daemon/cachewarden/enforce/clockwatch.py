"""Noticing a wall clock that jumped, also between two commands and over a restart of the service.

A pass right after a jump would find everything a year old, or nothing older than a moment. So age and idle
rules wait for one interval: until then somebody, or a time server, has had the time to put the clock right.
Meanwhile whatever ends at a time (a pin, a soft lock, the wait for other nodes) is judged by the earlier of
the two times that it could be: the clock's, and the one that it would show without the jump. Keeping longer
harms less than letting go.

What is compared is the wall clock less the boot's clock, which stays the same for months but for what a time
server corrects. It is kept in the runtime directory: both end with the boot, and no full disk prevents it.
"""

import threading
from dataclasses import dataclass, replace

from cachewarden.ledger import ClockMark, read_mark, write_mark
from cachewarden.units import format_duration
from cachewarden_policies.policy import HOUR, MINUTE

CLOCK_TOLERANCE = HOUR
# A time server moves a clock by half a millisecond in each second at most (adjtime(3)): a mark that follows
# in steps of this size is written once in two days then, and no slow correction ever adds up to a jump.
_FOLLOW_NS = MINUTE


@dataclass(frozen=True, slots=True)
class Reading:
    """The time of a pass: nanoseconds since the epoch.

    `suspect`: the wall clock jumped not long ago. `sure_ns` and `late_ns` are the earliest and the latest
    that it may be now; both are `wall_ns` while nothing is suspect. `jump_ns` is how far it jumped, 0 where
    that is not known.
    """

    wall_ns: int
    sure_ns: int
    late_ns: int
    suspect: bool = False
    jump_ns: int = 0

    @classmethod
    def plain(cls, wall_ns: int) -> "Reading":
        """The time by a clock that nobody doubts."""
        return cls(wall_ns, wall_ns, wall_ns)

    @property
    def sentence(self) -> str:
        """What people should know while it is suspect."""
        by = format_duration((abs(self.jump_ns) + MINUTE // 2) // MINUTE * MINUTE)
        if not self.jump_ns:
            return "the clock is or was behind the last pass: age and idle rules wait for one interval"
        way = "ahead" if self.jump_ns > 0 else "back"
        return f"the wall clock jumped {way} by {by}: age and idle rules wait for one interval"


class ClockWatch:
    """Compares the clocks at each pass. Thread-safe; raises nothing.

    `hold_ns` is how long rules wait after a jump. `known_ns` is the newest time on record: a clock that is
    behind it when nothing is known of this boot went wrong while the machine was off.
    """

    def __init__(self, hold_ns: int, runtime_dir: bytes | None = None, known_ns: int = 0) -> None:
        self.hold_ns = hold_ns
        self._runtime_dir = runtime_dir
        self._known_ns = known_ns
        self._lock = threading.Lock()
        self._mark = read_mark(runtime_dir) if runtime_dir is not None else None

    def look(self, wall_ns: int, boot_ns: int, *, keep: bool = True) -> Reading:
        """The time, and how far it can be trusted. With `keep` false nothing is remembered."""
        with self._lock:
            mark = self._next(wall_ns, boot_ns)
            if keep and mark != self._mark:
                self._mark = mark
                if self._runtime_dir is not None:
                    write_mark(self._runtime_dir, mark)
        if mark.until_ns is None or boot_ns >= mark.until_ns:
            return Reading.plain(wall_ns)
        other_ns = wall_ns if mark.trusted_ns is None else boot_ns + mark.trusted_ns
        # By the mark, which stays as it is: people are told the same in each pass.
        jump_ns = 0 if mark.trusted_ns is None else mark.offset_ns - mark.trusted_ns
        return Reading(wall_ns, min(wall_ns, other_ns), max(wall_ns, other_ns), True, jump_ns)

    def _next(self, wall_ns: int, boot_ns: int) -> ClockMark:
        offset = wall_ns - boot_ns
        if self._mark is None:
            behind = wall_ns < self._known_ns - CLOCK_TOLERANCE
            return ClockMark(offset, boot_ns + self.hold_ns if behind else None)
        moved = abs(offset - self._mark.offset_ns)
        if moved > CLOCK_TOLERANCE:
            held = self._mark.until_ns is not None and boot_ns < self._mark.until_ns
            # Of several jumps in a row, the time before the first is the last that could be trusted.
            trusted = self._mark.trusted_ns if held else self._mark.offset_ns
            return ClockMark(offset, boot_ns + self.hold_ns, trusted)
        return replace(self._mark, offset_ns=offset) if moved > _FOLLOW_NS else self._mark
