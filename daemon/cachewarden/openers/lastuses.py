"""When each entry of a location was opened last, and what of that the ledger has not got yet.

Programs that do not count leave a trace too: where they read, access times move, and those would make an
entry young that only an indexer read. So it is noted which entries they passed through, when, and what the
access time had been before.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from cachewarden.openers.memory import SLACK_NS, Memory
from cachewarden.openers.processes import Who
from cachewarden_policies.policy import DAY

# An access time so long after the last open of a program that does not count may still be its: it goes on
# reading what it opened, and relatime may move the time at its next visit only.
_PASSING_NS = DAY
# What the kernel writes into an inode is the time of its last tick (CONFIG_HZ is 100 at least).
_TICK_NS = 10**7


class Moment(NamedTuple):
    """One moment on both clocks: nanoseconds since the epoch, and since the boot."""

    wall_ns: int
    boot_ns: int


class Recent(NamedTuple):
    """The newest open of an entry that was seen: nanoseconds since the epoch, and who.

    `comm` is empty where the process had ended before we could ask, `uid` None.
    """

    ns: int
    pid: int
    comm: bytes
    uid: int | None = None


class Passing(NamedTuple):
    """Access times of an entry from `ns` till `until_ns` prove no use; before that it was `atime_ns`."""

    ns: int
    until_ns: int
    atime_ns: int


class News(NamedTuple):
    """What the ledger has not got, by entry."""

    used: Mapping[bytes, Recent]
    passed: Mapping[bytes, Passing]


NO_NEWS = News({}, {})


def save_news(memory: Memory, seen_by: str, news: Mapping[str, News], now_ns: int) -> None:
    """Bring the news of locations, by key, to the ledger."""
    for key, each in news.items():
        if each.used or each.passed:
            memory.save_uses(key, seen_by, each.used, each.passed, now_ns)


class LastUses:
    """The last uses of one location's entries."""

    def __init__(self) -> None:
        self._recent: dict[bytes, tuple[Moment, Who]] = {}
        self._kept_ns: dict[bytes, int] = {}
        self._unsaved: set[bytes] = set()
        self._passed: dict[bytes, Passing] = {}
        self._passed_kept_ns: dict[bytes, int] = {}
        self._passed_unsaved: set[bytes] = set()
        self._atimes: Mapping[bytes, int] = {}

    def note(self, entry: bytes, now: Moment, who: Who) -> None:
        """It was opened. The newest is told by the clock that never jumps: the wall clock may be set back."""
        known = self._recent.get(entry)
        if known is None or known[0].boot_ns <= now.boot_ns:  # what was remembered elsewhere may be older
            self._recent[entry] = (now, who)
            self._unsaved.add(entry)

    def passed(self, entry: bytes, since_ns: int, now_ns: int) -> None:
        """It was opened by a program that does not count, between two moments of the wall clock."""
        before_ns = self._atimes.get(entry, 0)
        known = self._passed.get(entry)
        if known is None or before_ns > known.until_ns:
            known = Passing(since_ns - _TICK_NS, 0, before_ns)
        self._passed[entry] = known._replace(until_ns=now_ns + _PASSING_NS)
        if now_ns + _PASSING_NS - self._passed_kept_ns.get(entry, 0) >= SLACK_NS:
            self._passed_unsaved.add(entry)

    def measured(self, atimes: Mapping[bytes, int]) -> None:
        """The access times of the entries at the last look."""
        self._atimes = atimes

    def carry_over(self, old: bytes, other: "LastUses", new: bytes) -> None:
        """What was the entry `old` here is (part of) `new` there now."""
        if old in self._recent:
            other.note(new, *self._recent[old])

    def all(self) -> dict[bytes, Recent]:
        """The newest open of each entry, by name."""
        return {entry: _recent(*known) for entry, known in self._recent.items()}

    def forget_all_but(self, entries: Collection[bytes]) -> None:
        """Forget uses of what is no entry any more."""
        kept = set(entries)
        for known in (self._recent, self._kept_ns, self._passed, self._passed_kept_ns):
            for entry in known.keys() - kept:
                del known[entry]
        self._unsaved &= kept
        self._passed_unsaved &= kept

    def take_news(self, *, every: bool) -> News:
        """What the ledger has not got, once. Unless `every` of it is asked for, only what is worth a write:
        an entry that is used all the time is not written all the time."""
        due = self._unsaved
        if not every:
            kept_ns = self._kept_ns
            due = {
                name for name in due if abs(self._recent[name][0].wall_ns - kept_ns.get(name, 0)) >= SLACK_NS
            }
        used = {name: _recent(*self._recent[name]) for name in due}
        self._unsaved = self._unsaved - due
        self._kept_ns |= {name: use.ns for name, use in used.items()}
        passed = {name: self._passed[name] for name in self._passed_unsaved}
        self._passed_unsaved = set()
        self._passed_kept_ns |= {name: passing.until_ns for name, passing in passed.items()}
        return News(used, passed)


def _recent(when: Moment, who: Who) -> Recent:
    return Recent(when.wall_ns, who.process.pid, who.comm, who.uid)
