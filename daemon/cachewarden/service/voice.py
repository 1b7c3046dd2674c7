"""How the service tells others that it is there: the service manager, and commands on this machine."""

import os
from collections.abc import Mapping, Sequence

from cachewarden.ledger import ServiceState, remove_service_state, write_service_state
from cachewarden.logs import Changes, get_logger
from cachewarden.notify import Notifier
from cachewarden_policies.policy import SECOND

_TURN_SECONDS = 1.0


def sentence(there: int, silent: int, blinded: Sequence[str], *, refused: bool) -> str:
    """The service's state in one line: how many locations there are, and how many of them do not answer.

    `refused`: the last reload failed, and what is in force is not what stands in the files.
    """
    if blinded:
        told = f"nothing is evicted: {'; '.join(blinded)}"
    else:
        told = f"{there} locations" if there != 1 else "1 location"
        told += f", {silent} of them not answering" if silent else ""
    return f"{told}; the configuration was refused, the one before is in force" if refused else told


class Voice:
    """Says only what changed. `refused`: the last reload failed."""

    def __init__(self, notifier: Notifier, runtime_dir: bytes, since_ns: int) -> None:
        self.notifier = notifier
        self.refused = False
        self._reload = ""
        self._reloads = 0
        self._runtime_dir = runtime_dir
        self._since_ns = since_ns
        self._next_pass_ns: int | None = None
        self._log = get_logger()
        self._said = Changes()

    @property
    def turn_seconds(self) -> float:
        """How often to `tell` at least: twice as often as the watchdog wants, and once a second.

        Each turn of the main loop costs a tenth of a millisecond, and most of them find nothing to do.
        """
        interval_ns = self.notifier.watchdog_interval_ns
        return _TURN_SECONDS if interval_ns is None else min(_TURN_SECONDS, interval_ns / 2 / SECOND)

    def reloaded(self, how: str, *, successful: bool) -> None:
        """The configuration was read again, or was not; how that went, for people. `tell` publishes it."""
        self._reload = how
        self._reloads += 1
        self.refused = not successful

    def tell(
        self,
        sentence: str,
        next_pass_ns: int | None,
        watch_modes: Mapping[str, str],
        blinded: Sequence[str] = (),
        enforced: Mapping[str, bool] | None = None,
    ) -> None:
        """Publish the state; also a sign of life for the watchdog, so call it from the main loop only."""
        state = ServiceState(
            os.getpid(),
            self._since_ns,
            self._reload,
            self._steady(next_pass_ns),
            watch_modes,
            tuple(blinded),
            reloads=self._reloads,
            enforced=enforced or {},
        )
        if self._said.changed("state", state):
            self._publish(state)
        if self._said.changed("status", sentence):
            self.notifier.status(sentence)
        if self.notifier.watchdog_interval_ns is not None:
            self.notifier.watchdog()

    def _steady(self, next_pass_ns: int | None) -> int | None:
        """The same as before where it is nearly the same: two clocks give a little other value each time."""
        before = self._next_pass_ns
        near = None not in (before, next_pass_ns) and abs((before or 0) - (next_pass_ns or 0)) < 5 * SECOND
        if not near:
            self._next_pass_ns = next_pass_ns
        return self._next_pass_ns

    def leave(self) -> None:
        """The service ends."""
        remove_service_state(self._runtime_dir)

    def _publish(self, state: ServiceState) -> None:
        try:
            write_service_state(self._runtime_dir, state)
        except OSError as error:
            if self._said.changed("trouble", error.errno):
                self._log.warning("cannot tell commands that we run, skipping", error=error.strerror)
