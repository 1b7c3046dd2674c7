"""What we keep ourselves: the state directory, the ledger, the pins, and a running service."""

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from cachewarden.doctor.finding import Finding, good, named, note, weaker
from cachewarden.doctor.remembered import aside_findings, ledger_finding
from cachewarden.errors import PinsUnreadableError
from cachewarden.evict.trial import probe_file
from cachewarden.kernel import statfs
from cachewarden.ledger import PinStore, read_service_state
from cachewarden.ledger.disk import NAME
from cachewarden.paths import show
from cachewarden.units import format_size

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# What a day's worth of passes writes, and the log in front of the ledger (`journal_size_limit`), fit in well.
_FEW_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Own:
    """What is ours: where we keep things, and whether we are an ordinary user's (`--user`).

    `interval_ns` is how long rules wait after the clock jumped.
    """

    state_dir: bytes
    runtime_dir: bytes
    user_mode: bool
    interval_ns: int


def memory_findings(own: Own, now_ns: int) -> Iterator[Finding]:
    """Look at it: nothing is made or migrated. Damaged pins are set aside, as by every command."""
    if not os.path.isdir(own.state_dir):
        yield note(
            "state", f"{show(own.state_dir)} is not there: it is made when a pass or the service first runs"
        )
    else:
        yield _state(own.state_dir)
        yield ledger_finding(own.state_dir, now_ns)
        yield _pins(own.state_dir, now_ns)
        yield from aside_findings(own.state_dir)
    yield _service(own)


def _state(state_dir: bytes) -> Finding:
    try:
        fd = os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with probe_file(fd):
                pass
            found, free = os.fstat(fd), statfs.usage(fd).avail_bytes
        finally:
            os.close(fd)
    except OSError as error:
        return weaker(
            "state",
            f"{show(state_dir)} cannot be written to: {named(error.errno)}. Evicting goes on, and what it "
            "learns is lost with the process",
            "make room there, or see to its owner and mode",
        )
    whose = f"{_user(found.st_uid)}'s, mode {stat.S_IMODE(found.st_mode):04o}, {format_size(free)} free"
    if free < max(_FEW_BYTES, _size(os.path.join(state_dir, NAME))):
        return weaker(
            "state",
            f"{show(state_dir)}: {whose}: too little for the ledger. Evicting goes on, and what it learns is "
            "lost with the process",
            "make room there, or let `state_dir` be on another filesystem",
        )
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & _OTHERS_WRITE:
        return weaker(
            "state",
            f"{show(state_dir)}: {whose}: others may change what is on record, and which pins there are",
            f"chown {_user(os.geteuid())}, and chmod 0700",
        )
    return good("state", f"{show(state_dir)} can be written to: {whose}")


def _user(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"uid {uid}"


def _size(path: bytes) -> int:
    with suppress(OSError):
        return os.stat(path).st_size
    return 0


def _pins(state_dir: bytes, now_ns: int) -> Finding:
    try:
        pins = PinStore(state_dir).load(now_ns)
    except PinsUnreadableError as error:
        return weaker("pins", f"{error}: everything counts as pinned", "repair the file, or move it away")
    if pins.notices:
        return weaker("pins", "; ".join(pins.notices), "look at the file and its copy")
    return good("pins", f"{len(pins.active(now_ns))} in force")


def _service(own: Own) -> Finding:
    state = read_service_state(own.runtime_dir)
    if state is None:
        return weaker(
            "service",
            "it is not running: who opened a file and closed it again before a pass began is not known then",
            f"systemctl {'--user ' if own.user_mode else ''}enable --now cachewarden",
        )
    return good("service", f"it is running (pid {state.pid}) and remembers who opened what")
