"""A program: become a user for good, and then what he runs.

    python -I -S become.py UID GID GROUP,… EXECUTABLE ARGUMENT…

Whoever starts it waits for its own execve(2) only, which is over before the user has any say. What he can
hold up (an interpreter on a filesystem of his, a signal at the wrong moment) happens to a process that has
a time limit already. It imports nothing of ours, and ends with 126 where it could not do all of it.
"""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

_PR_SET_NO_NEW_PRIVS = 38  # prctl(2): what is set-user-ID gives nothing to whoever runs it from here on
_NOT_RUN = 126
# Whatever he starts counts as ours (systemd's TasksMax): a tool gets so many more processes and threads than
# its user has already, of which no more than so many count. Pools of threads have the size of the machine.
_TASKS = max(256, 4 * (os.cpu_count() or 1))
_TASKS_BEFORE = 4096


def _bound_tasks(uid: int) -> None:
    """RLIMIT_NPROC is about all of a user's tasks on the machine, and nothing to root (getrlimit(2))."""
    before = 0
    for pid in os.listdir("/proc"):
        with suppress(OSError):
            if pid.isdigit() and os.stat(f"/proc/{pid}").st_uid == uid:
                before += len(os.listdir(f"/proc/{pid}/task"))
    most = min(before, _TASKS_BEFORE) + _TASKS
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    if hard == resource.RLIM_INFINITY or hard > most:
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _gain_nothing() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")


def main(arguments: Sequence[str]) -> int:
    """Never returns where all went well."""
    uid, gid, groups, *command = arguments
    try:
        _bound_tasks(int(uid))
        os.setgroups([int(group) for group in groups.split(",") if group])
        os.setresgid(int(gid), int(gid), int(gid))
        os.setresuid(int(uid), int(uid), int(uid))
        _gain_nothing()
        # Python ignores them, and what is ignored or blocked stays so over execve(2).
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGIO):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execv(command[0], command)  # noqa: S606 - without a shell, as it should be
    except OSError as error:
        sys.stderr.write(f"{command[0]} was not run: {error.strerror}\n")
    return _NOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
