"""Telling the running service to read its configuration again, and waiting for what it says to that."""

import signal
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from cachewarden.clock import Clock
from cachewarden.ledger import read_service_state, signal_service

OK = "ok"
_LOOK_SECONDS = 0.05
_PATIENCE_NS = 10 * 10**9  # it looks for its locations meanwhile, for two seconds where one does not answer


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What the service with this pid said. `how`: `ok`, or `failed: …`; None: nothing within ten seconds.

    `enforced`: whether it evicts from its locations, by their configured names; it may have others than we.
    """

    pid: int
    how: str | None
    enforced: Mapping[str, bool] = field(default_factory=dict)

    @property
    def successful(self) -> bool:
        """Whether it goes by what it read."""
        return self.how == OK

    def against(self, names: Collection[str], enforced: bool) -> list[str]:
        """Those of these locations that are not as they should be, for the service."""
        return [name for name in names if self.enforced.get(name) is not enforced]

    def agrees(self, names: Collection[str], enforced: bool) -> bool:
        """Whether the service goes by it."""
        return self.successful and not self.against(names, enforced)

    def to_json(self, names: Collection[str], enforced: bool) -> dict[str, object]:
        """The object `service` of `enforce --json`."""
        return {"pid": self.pid, "reload": self.how, "in_force": self.agrees(names, enforced)}


def reload_service(runtime_dir: bytes, clock: Clock) -> Reloaded | None:
    """Tell the service of this runtime directory to reload; None: none runs.

    Whoever else tells it at the same time gets the same answer. One that is not ours to tell has failed.
    """
    try:
        before = signal_service(runtime_dir, signal.SIGHUP)
    except OSError as error:
        found = read_service_state(runtime_dir)
        return Reloaded(found.pid, f"failed: it cannot be told: {error.strerror}") if found else None
    if before is None:
        return None
    end_ns = clock.monotonic_ns() + _PATIENCE_NS
    while clock.monotonic_ns() < end_ns:
        time.sleep(_LOOK_SECONDS)
        state = read_service_state(runtime_dir)
        if state is None or state.started_ticks != before.started_ticks:
            break
        if state.reloads > before.reloads:
            return Reloaded(state.pid, state.reload, state.enforced)
    return Reloaded(before.pid, None)
