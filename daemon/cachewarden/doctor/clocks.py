"""Whether the time can be trusted: who keeps the wall clock, whether it jumped, what is from the future."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

from cachewarden.clock import Clock
from cachewarden.doctor.finding import Finding, good, moment, named, note, weaker
from cachewarden.doctor.memory import Own
from cachewarden.enforce.clockwatch import CLOCK_TOLERANCE, ClockWatch
from cachewarden.errors import LedgerTooNewError
from cachewarden.kernel.adjtimex import Discipline, discipline
from cachewarden.ledger.disk import DamagedError, open_for_reading
from cachewarden.ledger.schema import STEPS
from cachewarden.paths import show
from cachewarden.units import format_duration
from cachewarden_policies.policy import SECOND

_MILLISECOND = 10**6
# Whatever a file server's clock or a slow look makes of it.
_AHEAD_NS = 60 * SECOND
_NAMES = 1000


def clock_findings(own: Own, clock: Clock) -> Iterator[Finding]:
    """Who keeps the clock, and how it stands to what is on record. Remembers nothing. Raises nothing."""
    try:
        yield kept_finding(discipline())
    except OSError as error:
        yield note("clock", f"whether a time service keeps it cannot be asked: {named(error.errno)}")
    yield _against_record(own, clock)


def kept_finding(found: Discipline) -> Finding:
    """What the kernel says of the clock's correctness.

    No is a note only: machines that get the time from their host say no for ever, and are right.
    """
    if found.synchronized:
        error = f"{max(found.max_error_ns // _MILLISECOND, 1):,} ms"
        return good("clock", f"a time service keeps it; it is wrong by {error} at most")
    return note(
        "clock",
        "no time service keeps it, or none that tells the kernel: ages and idle times are as right as it is",
        "systemctl enable --now systemd-timesyncd, or chrony; nothing where the host keeps the clock",
    )


def _against_record(own: Own, clock: Clock) -> Finding:
    newest = _newest_pass_ns(own.state_dir)
    now_ns = clock.wall_ns()
    watch = ClockWatch(own.interval_ns, own.runtime_dir, newest)
    reading = watch.look(now_ns, clock.monotonic_ns(), keep=False)
    wait = f"see to the clock; if it is right now, wait for one interval ({format_duration(own.interval_ns)})"
    if now_ns < newest - CLOCK_TOLERANCE:
        return weaker(
            "time on record",
            f"the clock is {format_duration(newest - now_ns)} behind the last pass on record "
            f"({moment(newest)}): what was used since cannot be told from what was used then",
            wait,
        )
    if reading.suspect:
        return weaker("time on record", reading.sentence, wait)
    if not newest:
        return note(
            "time on record", "no pass is on record, so that the clock has nothing to be compared with"
        )
    return good("time on record", "the clock is not behind the last pass, and did not jump")


def _newest_pass_ns(state_dir: bytes) -> int:
    """As `enforce.books.newest_pass_ns`, but of a ledger that nobody opens for writing. 0: none known."""
    try:
        connection = open_for_reading(state_dir, STEPS)
        if connection is None:
            return 0
        with closing(connection):
            row = connection.execute("SELECT max(last_pass_ns) AS newest FROM locations").fetchone()
    except (LedgerTooNewError, DamagedError, OSError, sqlite3.Error):
        return 0  # `ledger` says so
    return int(row["newest"] or 0)


def stamps_finding(root_fd: int, path: bytes, now_ns: int) -> Finding:
    """Whether what lies at the top of a location has times from the future. Raises OSError."""
    ahead, furthest, seen = 0, 0, 0
    with os.scandir(root_fd) as names:
        for each in islice(names, _NAMES):
            try:
                found = each.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            seen += 1
            by = max(found.st_mtime_ns, found.st_ctime_ns, found.st_atime_ns) - now_ns
            ahead += by > _AHEAD_NS
            furthest = max(furthest, by)
    if ahead:
        return note(
            "stamps",
            f"of {seen:,} at the top of {show(path)}, {ahead:,} have times from the future (by up to "
            f"{format_duration(furthest)}): up to a day ahead they count as now, further ahead not at all",
            "see to the clock of whoever wrote them, and touch them",
        )
    return good(
        "stamps", f"nothing at the top of {show(path)} has a time from the future ({seen:,} looked at)"
    )
