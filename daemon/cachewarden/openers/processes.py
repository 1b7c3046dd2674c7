"""Which process is that, and does it still run? By pid and start, because pids come again.

A process's start is field 22 of /proc/PID/stat, in clock ticks since boot: proc_pid_stat(5).
"""

import errno
import fnmatch
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

# A process's own name is cut to so many bytes: TASK_COMM_LEN of sched.h, less its final zero.
_COMM = 15
_GONE = frozenset({errno.ENOENT, errno.ESRCH})


class Process(NamedTuple):
    """A process for as long as this boot lasts. `start_ticks` 0: not known, so any with this pid is meant."""

    pid: int
    start_ticks: int


# Whoever is not in our pid namespace (it lies above ours) is reported as pid 0.
UNKNOWN = Process(0, 0)


class Who(NamedTuple):
    """A process, its name, and its user; `b""` and None where they are not known."""

    process: Process
    comm: bytes = b""
    uid: int | None = None


def look(pid: int) -> tuple[Process, bytes] | None:
    """The process that has this pid now, and its name. None: none that runs (a zombie does not).

    One that /proc does not show though it runs (hidepid) is known by its pid alone.
    """
    try:
        fd = os.open(b"/proc/%d/stat" % pid, os.O_RDONLY | os.O_CLOEXEC)  # half the time of open()
        try:
            text = os.read(fd, 4096)
        finally:
            os.close(fd)
    except OSError as error:
        return (Process(pid, 0), b"") if error.errno not in _GONE or _runs(pid) else None
    end = text.rindex(b")")  # the name before it may hold anything, parentheses too
    fields = text[end + 2 :].split()
    if fields[0] in (b"Z", b"X") and int(fields[17]) <= 1:  # num_threads: the leader may go first
        return None
    return Process(pid, int(fields[19])), text[text.index(b"(") + 1 : end]


def user_of(pid: int) -> int | None:
    """The effective uid of a process; None where it is gone.

    /proc/PID itself belongs to that user, also where what is in it is root's because the process may not be
    traced: task_dump_owner() of fs/proc/base.c.
    """
    try:
        return os.stat(b"/proc/%d" % pid).st_uid
    except OSError:
        return None


def alive(process: Process) -> bool:
    """Whether it still runs. Unknown means yes."""
    if process.pid == 0:
        return True
    found = look(process.pid)
    if found is None:
        return False
    return 0 in (process.start_ticks, found[0].start_ticks) or found[0] == process


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno == errno.EPERM
    return True


class Ignored:
    """Programs that neither refresh nor hold, by patterns (`*`, `?`, `[…]`) of their names.

    A pattern is held against the process's name, which is that of a script too, and against the name of
    its executable, which is longer than 15 bytes where it has to be.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        kept = list(patterns)
        # A plain name is matched in full by the executable, and as far as it goes by the process's name.
        kept += [os.fsdecode(os.fsencode(each)[:_COMM]) for each in kept if not re.search(r"[*?\[]", each)]
        self._regex = re.compile("|".join(map(fnmatch.translate, kept))) if kept else None
        self._known: dict[tuple[Process, bytes], bool] = {}

    def matches(self, process: Process, comm: bytes) -> bool:
        """Whether this process, under this name, is one of them."""
        if self._regex is None:
            return False
        key = (process, comm)
        known = self._known.get(key)
        if known is None:
            known = any(self._regex.match(os.fsdecode(name)) for name in (comm, _executable(process.pid)))
            if len(self._known) >= 10_000:
                self._known.clear()
            self._known[key] = known
        return known


def _executable(pid: int) -> bytes:
    try:
        path = os.readlink(b"/proc/%d/exe" % pid)
    except OSError:
        return b""
    return os.path.basename(path.removesuffix(b" (deleted)"))
