"""One command as another user: with his groups, a clean environment, bounded in time and output.

The child is `become.py`, which changes its groups and ids before it executes anything (setgroups(2),
setresgid(2), setresuid(2); with that it loses every capability, see capabilities(7)). It stands in `/`, and
leads a session of its own, so that it can be ended with everything that it started and that stayed there.

Its user may be anybody: whatever he does with his processes, nothing here waits for them without a limit.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from cachewarden.evict.tools.account import SYSTEM, Account
from cachewarden.paths import show

_TICK_SECONDS = 0.2
_PAUSE_SECONDS = 0.005
_GRACE_SECONDS = 3.0
_BECOME = os.path.join(os.path.dirname(__file__), "become.py")
_OUTPUT_MAX = 64 << 10
_LINES_SHOWN = 5
_LINE_MAX = 300


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that was run. `status` is its exit status, negative for a signal.

    `ended` says why we ended it; None: it came to its end.
    """

    command: str
    user: str
    status: int
    output: bytes
    seconds: float
    ended: str | None = None

    @property
    def sentence(self) -> str:
        """For the log: what was run, how it went, and the end of what it said."""
        how = self.ended or f"exit status {self.status}"
        lines = [show(line.strip()[-_LINE_MAX:]) for line in self.output.splitlines() if line.strip()][
            -_LINES_SHOWN:
        ]
        said = f": {' / '.join(lines)}" if lines else ""
        return f"{self.command} as {self.user}: {how} after {self.seconds:.1f} s{said}"


def run(
    argv: Sequence[str],
    environment: Mapping[str, str],
    account: Account,
    timeout_seconds: float,
    stop: Callable[[], bool],
) -> Ran:
    """Run a command to its end, or until it took too long or `stop` says so. Raises OSError.

    The time-out reads a clock of its own: it bounds a wait, and decides nothing else.
    """
    begun = time.monotonic()
    child = _start(argv, environment, account)
    assert child.stdout is not None
    output = bytearray()
    ended = None
    with child.stdout, selectors.DefaultSelector() as selector:
        os.set_blocking(child.stdout.fileno(), False)
        selector.register(child.stdout, selectors.EVENT_READ)
        try:
            while not _has_ended(child.pid) and ended is None:
                # After a child that closed its output, or floods it, every wait would return at once.
                if selector.select(_TICK_SECONDS):
                    time.sleep(_PAUSE_SECONDS if _read(child.stdout.fileno(), output) else _TICK_SECONDS)
                if stop():
                    ended = "ended because the service stops"
                elif time.monotonic() - begun > timeout_seconds:
                    ended = f"ended after {timeout_seconds:.0f} s"
        finally:
            _end(child, account)
        _read(child.stdout.fileno(), output)
    status = -signal.SIGKILL if child.returncode is None else child.returncode
    return Ran(" ".join(argv), account.name, status, bytes(output), time.monotonic() - begun, ended)


def _start(
    argv: Sequence[str], environment: Mapping[str, str], account: Account
) -> "subprocess.Popen[bytes]":
    groups = ",".join(map(str, account.groups))
    become = (sys.executable, "-I", "-S", _BECOME, str(account.uid), str(account.gid), groups)
    return subprocess.Popen(
        [*(become if os.geteuid() == 0 else ()), *argv],
        env=_environment(account) | dict(environment),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        umask=0o022,
    )


def _environment(account: Account) -> dict[str, str]:
    return {
        "HOME": account.home,
        "USER": account.name,
        "LOGNAME": account.name,
        "PATH": ":".join((os.path.join(account.home, ".local/bin"), *SYSTEM)),
        "LANG": "C.UTF-8",
    }


def _read(fd: int, output: bytearray) -> bool:
    """Take what is there, and of more than is kept the end; False when nothing will come any more."""
    try:
        text = os.read(fd, _OUTPUT_MAX)
    except BlockingIOError:
        return True
    output += text
    del output[:-_OUTPUT_MAX]
    return bool(text)


def _end(child: "subprocess.Popen[bytes]", account: Account) -> None:
    """End the child, unless it came to its end, and all that it started: they share its process group.

    The group's number stays taken until the child is waited for, so that no other group can be hit.
    """
    if not _has_ended(child.pid):
        _signal(child.pid, signal.SIGTERM, account)
    patience = time.monotonic() + _GRACE_SECONDS
    while not _has_ended(child.pid) and time.monotonic() < patience:
        time.sleep(_TICK_SECONDS / 4)
    _signal(child.pid, signal.SIGKILL, account)
    with suppress(subprocess.TimeoutExpired):  # in a system call that cannot be interrupted
        child.wait(_GRACE_SECONDS)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _signal(group: int, number: int, account: Account) -> None:
    """Send a signal to a group of processes of this user.

    A service without CAP_KILL may not, root or not (kill(2)); but it may become that user, who may. He may
    also stop the process that does it: it is not waited for without a limit.
    """
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        with suppress(OSError):
            killer = _start(("/bin/sh", "-c", f"kill -{number} -{group}"), {}, account)
            assert killer.stdout is not None
            killer.stdout.close()
            with suppress(subprocess.TimeoutExpired):
                killer.wait(_GRACE_SECONDS)
