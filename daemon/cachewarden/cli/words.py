"""How numbers, times and reasons are said to people."""

from datetime import datetime

from cachewarden.ledger import FOREVER
from cachewarden.report import Holder
from cachewarden.units import format_size
from cachewarden_policies.reasons import Cost, EvictReason, KeepReason, Outcome

_SECOND = 10**9
_UNITS = ((86400 * _SECOND, "d"), (3600 * _SECOND, "h"), (60 * _SECOND, "min"), (_SECOND, "s"))

# A kept entry's reason as it stands after an amount: "10 GiB in use, 2 GiB protected".
SHORT: dict[KeepReason, str] = {
    KeepReason.WITHIN_LIMITS: "not needed to go",
    KeepReason.IN_USE: "in use",
    KeepReason.LIVE_OPENER: "held by a process that opened it",
    KeepReason.LOCKED: "locked",
    KeepReason.PINNED: "pinned",
    KeepReason.MIN_IDLE: "used more recently than min_idle",
    KeepReason.KEEP_NEWEST: "kept by keep_newest",
    KeepReason.PROTECTED: "protected",
    KeepReason.FOREIGN: "not part of the cache",
    KeepReason.MOUNTPOINT: "mounted",
    KeepReason.SHARED_DATA: "shared with entries that stay",
    KeepReason.NO_GAIN: "without gain",
    KeepReason.PARTIAL: "still downloading, perhaps",
    KeepReason.CHANGED: "changed meanwhile",
    KeepReason.LEARNING: "not known for long enough (learn)",
    KeepReason.CLOCK: "held back because the clock jumped",
    KeepReason.QUIET_HOURS: "held back in quiet hours",
    KeepReason.NOT_ENFORCED: "held back (report only, or paused)",
    KeepReason.CONFIRMATION: "waiting for confirmation",
    KeepReason.UNKNOWN: "perhaps in use",
    KeepReason.OTHER_NODE: "perhaps used by another node",
}

OUTCOME: dict[Outcome, str] = {
    Outcome.WITHIN_LIMITS: "within limits",
    Outcome.TRIMMED: "trimmed",
    Outcome.WAITING: "waits",
    Outcome.SHORT: "short",
    Outcome.UNAVAILABLE: "unavailable",
    Outcome.FAILED: "failed",
}

MISS: dict[Cost, str] = {
    Cost.DERIVED: "it would be remade from another cache in moments",
    Cost.REBUILD: "it would be computed again, which takes minutes to hours",
    Cost.DOWNLOAD: "it would be downloaded again",
    Cost.LOST: "it could not be made again",
}

_HOLDS = {
    "open": "has it open",
    "mapped": "has it mapped into its memory",
    "cwd": "works in it (current directory)",
    "root": "has its root directory in it",
    "exe": "runs a program from it",
    "directory": "has one of its directories open",
    "mount": "has it mounted",
    "lock": "holds its lock",
    "lease": "has it open",
    "opener": "opened it, and still runs",
}


_SENTENCES: dict[str, str] = {str(each): each.sentence for each in (*KeepReason, *EvictReason)}


def size(count: int | None) -> str:
    """Bytes, such as `1.5 GiB`; a dash when nobody knows."""
    return "-" if count is None else format_size(count)


def number(count: int | None) -> str:
    """A count with separators; a dash when nobody knows."""
    return "-" if count is None else f"{count:,}"


def entries(count: int) -> str:
    """`1 entry`, `2,000 entries`."""
    return plural(count, "entry", "entries")


def plural(count: int, one: str, many: str) -> str:
    """A count with the right form of its word."""
    return f"{count:,} {one if count == 1 else many}"


def percent(part: int, whole: int) -> str:
    """How much of a whole, rounded down, so that 100 % is never said of what is below it."""
    return f"{part * 100 // whole} %" if whole else "-"


def span(duration: int) -> str:
    """Nanoseconds in one unit, rounded down: `3 min`, `12 d`."""
    for unit, name in _UNITS:
        if duration >= unit:
            return f"{duration // unit} {name}"
    return "0 s"


def relative(time_ns: int | None, now_ns: int) -> str:
    """`3 min ago`, `in 2 h`, `now`; `never` for a time that there is not."""
    if time_ns is None:
        return "never"
    left = time_ns - now_ns
    if abs(left) < _SECOND:
        return "now"
    if left < 0:
        return f"{span(-left)} ago"
    # To the nearest minute: a pin for 3 d that was set a moment ago does not end in 2 d.
    return f"in {span(left + 30 * _SECOND if left > 60 * _SECOND else left)}"


def moment(time_ns: int) -> str:
    """A time on the wall, in the local time zone, to the minute."""
    return datetime.fromtimestamp(time_ns // _SECOND).astimezone().strftime("%Y-%m-%d %H:%M")


def until(time_ns: int | None, now_ns: int) -> str:
    """`until 2026-08-03 14:05 (in 1 h)`, or until it is taken back."""
    if time_ns is None or time_ns >= FOREVER:
        return "until it is taken back"
    return f"until {moment(time_ns)} ({relative(time_ns, now_ns)})"


def holder(found: Holder) -> str:
    """`python3 (pid 812, anna) has it open`."""
    known = [f"pid {found.pid}"] if found.pid is not None else []
    known += [found.user] if found.user else []
    name = found.name or ("somebody" if found.pid is None else "a process")
    inside = f" ({', '.join(known)})" if known else ""
    return f"{name}{inside} {_HOLDS.get(found.kind, f'uses it ({found.kind})')}"


def sentence(reason: str) -> str:
    """The sentence of a reason that history holds, or its name when only a newer version knows it."""
    return _SENTENCES.get(reason, reason)


def upper_first(text: str) -> str:
    """A sentence that begins like one."""
    return text[:1].upper() + text[1:]


def a(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
