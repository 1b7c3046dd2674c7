"""What an earlier process of ours knew of a location: read once, compared with the disk, written again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cachewarden.clock import Clock
from cachewarden.enforce.dividing import Demand, demand_of
from cachewarden.enforce.measures import MeasureFiles
from cachewarden.scan import Facts, Remembered, Stored, Totals, UnfitError, pack
from cachewarden.spec import LocationSpec
from cachewarden_policies.policy import MINUTE

# Somebody who writes all day would have us write all day. Lost with a later file is only how soon the
# figures are known after a kill.
KEEP_NS = 5 * MINUTE


class Kept:
    """The measures that are kept, and when each was written. Each is read once."""

    def __init__(self, files: MeasureFiles, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self._tried: set[str] = set()
        self._written: dict[str, tuple[int | None, int]] = {}

    @property
    def boot(self) -> str:
        """Tells this boot of the machine from all others."""
        return self._files.boot

    def take_notices(self) -> list[str]:
        """Sentences for people, each given out once."""
        return self._files.take_notices()

    def load(self, key: str) -> tuple[Stored, bool] | None:
        """What was kept of a location, the first time that it is asked for."""
        if key in self._tried:
            return None
        if not self._tried:
            self._files.prune(self._clock.wall_ns())
        self._tried.add(key)
        return self._files.load(key)

    def save(
        self,
        key: str,
        version: int,
        remembered: Remembered,
        more: Mapping[str, object],
        *,
        last: bool = False,
    ) -> None:
        """Write what changed: what has another `version` than what was written. `last`: for whoever comes
        after us, and in order.
        """
        now_ns = self._clock.monotonic_ns()
        written, written_ns = self._written.get(key, (None, now_ns - KEEP_NS))
        if written == version:
            if last:
                self._files.leave_in_order(key)
        elif last or now_ns - written_ns >= KEEP_NS:
            done = self._files.save(key, pack(remembered, more), in_order=last)
            self._written[key] = version if done else None, now_ns


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was kept of a location. `changed`: directories that are not as they were when it was measured.

    `in_order`: all that its keeper had seen to change is measured, in this boot of the machine.
    """

    totals: Totals
    more: Mapping[str, Any]
    changed: frozenset[bytes]
    in_order: bool
    _stored: Stored

    def remembered(self) -> Remembered | None:
        """All of it; None where it cannot be read."""
        try:
            return self._stored.remembered()
        except UnfitError:
            return None


def recall(kept: Kept, spec: LocationSpec, root_fd: int, facts: Facts) -> Recalled | None:
    """What was kept of a location, if it is of this one as it is configured and mounted now."""
    loaded = kept.load(spec.key)
    if loaded is None:
        return None
    stored, in_order = loaded
    try:
        fits = Demand(*stored.more["demand"]) == demand_of(spec) and stored.facts == facts
        same_boot = stored.more["boot"] == kept.boot
    except (KeyError, TypeError):
        return None
    if not fits:
        return None
    changed = stored.directories.changed(root_fd)
    return Recalled(stored.totals, stored.more, changed, in_order and same_boot, stored)
