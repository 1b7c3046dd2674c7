"""What restrains a location in this pass: pauses, quiet hours, learning, the clock, `max_share`."""

from dataclasses import dataclass

from cachewarden import recency
from cachewarden.enforce.survey import Survey
from cachewarden.ledger import LocationState
from cachewarden_policies.policy import HOUR
from cachewarden_policies.situation import Circumstances

CLOCK_TOLERANCE = HOUR


@dataclass(frozen=True, slots=True)
class Mood:
    """What holds for the whole pass, whatever the location.

    `quiet`: quiet hours. `clock_suspect`: the wall clock moved against the monotonic clock.
    `confirmed`: `once --yes`, max_share does not apply to this pass.
    """

    quiet: bool = False
    clock_suspect: bool = False
    confirmed: bool = False


def circumstances(
    survey: Survey, state: LocationState, mood: Mood, now_ns: int, *, paused: bool
) -> Circumstances:
    """The restraints on one location, at the start of a pass."""
    spec = survey.spec
    return Circumstances(
        enforce=spec.enforce and not paused,
        quiet=mood.quiet,
        learning=recency.learning(state.first_scan_ns, spec.policy.learn, survey.atime_mode, now_ns),
        clock_suspect=mood.clock_suspect,
        waiting=state.waiting_since_ns is not None,
        confirmed=mood.confirmed or state.confirmed(now_ns),
        bytes_at_start=survey.inventory.bytes,
        files_at_start=survey.inventory.files,
        entries_at_start=len(survey.facts),
    )


class ClockWatch:
    """Notices a wall clock that jumped: more than an hour against the monotonic one between two looks.

    A pass right after a jump would find everything a year old. Age and idle rules wait for `hold_ns`,
    one interval: until then somebody, or a time server, has had the time to put the clock right.
    """

    def __init__(self, hold_ns: int) -> None:
        self._hold_ns = hold_ns
        self._last: tuple[int, int] | None = None
        self._until_ns: int | None = None

    def suspect(self, wall_ns: int, monotonic_ns: int) -> bool:
        """Whether the wall clock jumped not long ago; False at the first look."""
        last, self._last = self._last, (wall_ns, monotonic_ns)
        if last is not None and abs((wall_ns - last[0]) - (monotonic_ns - last[1])) > CLOCK_TOLERANCE:
            self._until_ns = monotonic_ns + self._hold_ns
        return self._until_ns is not None and monotonic_ns < self._until_ns
