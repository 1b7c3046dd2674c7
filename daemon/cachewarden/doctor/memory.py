"""What we keep ourselves: the state directory, the ledger, the pins, and a running service."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from cachewarden.doctor.finding import Finding, good, named, note, weaker
from cachewarden.errors import LedgerTooNewError, PinsUnreadableError
from cachewarden.evict.trial import probe_file
from cachewarden.ledger import PinStore, read_service_state
from cachewarden.ledger.disk import DamagedError, open_for_reading
from cachewarden.ledger.schema import STEPS
from cachewarden.paths import show


def memory_findings(state_dir: bytes, runtime_dir: bytes, now_ns: int) -> Iterator[Finding]:
    """Look at it: nothing is made or migrated. Damaged pins are set aside, as by every command."""
    if not os.path.isdir(state_dir):
        yield note(
            "state", f"{show(state_dir)} is not there: it is made when a pass or the service first runs"
        )
    else:
        yield _state(state_dir)
        yield _ledger(state_dir)
        yield _pins(state_dir, now_ns)
    yield _service(runtime_dir)


def _state(state_dir: bytes) -> Finding:
    try:
        fd = os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with probe_file(fd):
                pass
        finally:
            os.close(fd)
    except OSError as error:
        return weaker(
            "state",
            f"{show(state_dir)} cannot be written to: {named(error.errno)}. Evicting goes on, and what it "
            "learns is lost with the process",
            "make room there, or see to its owner and mode",
        )
    return good("state", f"{show(state_dir)} can be written to")


def _ledger(state_dir: bytes) -> Finding:
    try:
        connection = open_for_reading(state_dir, STEPS)
        if connection is None:
            return note("ledger", "there is none yet")
        with closing(connection):
            verdict = str(connection.execute("PRAGMA integrity_check(1)").fetchone()["integrity_check"])
    except LedgerTooNewError as error:
        return weaker("ledger", str(error), "install the newer version")
    except DamagedError as error:
        verdict = str(error)
    except (OSError, sqlite3.Error) as error:
        return weaker("ledger", f"it cannot be read: {error}", "see to the disk and to its owner and mode")
    if verdict == "ok":
        return good("ledger", "whole")
    return weaker(
        "ledger",
        f"damaged ({verdict}): last use falls back to access times and stamps",
        "the next pass sets it aside and starts a new one; pins are in a file of their own",
    )


def _pins(state_dir: bytes, now_ns: int) -> Finding:
    try:
        pins = PinStore(state_dir).load(now_ns)
    except PinsUnreadableError as error:
        return weaker("pins", f"{error}: everything counts as pinned", "repair the file, or move it away")
    if pins.notices:
        return weaker("pins", "; ".join(pins.notices), "look at the file and its copy")
    return good("pins", f"{len(pins.active(now_ns))} in force")


def _service(runtime_dir: bytes) -> Finding:
    state = read_service_state(runtime_dir)
    if state is None:
        return weaker(
            "service",
            "it is not running: who opened a file and closed it again before a pass began is not known then",
            "systemctl enable --now cachewarden",
        )
    return good("service", f"it is running (pid {state.pid}) and remembers who opened what")
