"""What a running service tells commands about itself: a small file in the runtime directory."""

import json
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields

from cachewarden.ledger.files import write_atomically

NAME = b"service.json"


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The running service. `reload`: how the last reload of the configuration went, for people; `reloads`
    counts them.

    `watch_modes` is by location key. `blinded`: why nothing is evicted, in sentences. `enforced` has all
    configured names, and whether they are. `started_ticks` (proc_pid_stat(5), field 22) tells this process
    from a later one with the same pid.
    """

    pid: int
    since_ns: int
    reload: str = ""
    next_pass_ns: int | None = None
    watch_modes: Mapping[str, str] = field(default_factory=dict)
    blinded: Sequence[str] = ()
    started_ticks: int | None = None
    reloads: int = 0
    enforced: Mapping[str, bool] = field(default_factory=dict)


def write_service_state(runtime_dir: bytes, state: ServiceState) -> None:
    """Publish it; `started_ticks` is filled in. Raises OSError."""
    os.makedirs(runtime_dir, exist_ok=True)
    content = asdict(state) | {"started_ticks": _started_ticks(state.pid)}
    write_atomically(runtime_dir, NAME, json.dumps(content).encode())


def read_service_state(runtime_dir: bytes) -> ServiceState | None:
    """The running service, or None when none runs (or one that was killed left its file behind)."""
    try:
        with open(os.path.join(runtime_dir, NAME), "rb") as file:
            found = json.loads(file.read())
        known = {each.name for each in fields(ServiceState)}
        state = ServiceState(**{name: value for name, value in found.items() if name in known})
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    ticks = _started_ticks(state.pid)
    return state if ticks is not None and ticks == state.started_ticks else None


def signal_service(runtime_dir: bytes, number: int) -> ServiceState | None:
    """Send a signal to the running service: the state that it was in before. None: there is none.

    By a descriptor of the process, looked at before and after it was opened: most processes that could have
    its pid by now would die of the signal. pidfd_send_signal(2): Linux 5.1. Raises OSError: it is somebody
    else's service.
    """
    state = read_service_state(runtime_dir)
    if state is None:
        return None
    try:
        fd = os.pidfd_open(state.pid)
    except ProcessLookupError:
        return None
    try:
        if _started_ticks(state.pid) != state.started_ticks:
            return None
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return None
    finally:
        os.close(fd)
    return state


def remove_service_state(runtime_dir: bytes) -> None:
    """The service ends. Never raises: a file left behind is recognised as such."""
    with suppress(OSError):
        os.unlink(os.path.join(runtime_dir, NAME))


def _started_ticks(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    # The command name stands in parentheses and may contain anything, also parentheses.
    return int(stat[stat.rindex(b")") + 2 :].split()[19])
