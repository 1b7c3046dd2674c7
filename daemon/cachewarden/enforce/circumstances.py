"""What restrains a location in this pass: pauses, quiet hours, learning, the clock, `max_share`."""

from dataclasses import dataclass

from cachewarden import recency
from cachewarden.enforce.clockwatch import Reading
from cachewarden.enforce.survey import Survey
from cachewarden.ledger import LocationState
from cachewarden_policies.situation import Circumstances


@dataclass(frozen=True, slots=True)
class Mood:
    """What holds for the whole pass, whatever the location.

    `quiet`: quiet hours. `confirmed`: `once --yes`, max_share does not apply to this pass. `blinded`: caches
    or their users are hidden from this process, so that nothing may go.
    """

    quiet: bool = False
    blinded: bool = False
    confirmed: bool = False


def circumstances(
    survey: Survey, state: LocationState, mood: Mood, time: Reading, *, paused: bool
) -> Circumstances:
    """The restraints on one location, at the start of a pass. In doubt about the time they hold."""
    spec = survey.spec
    return Circumstances(
        enforce=spec.enforce and not paused and not mood.blinded,
        quiet=mood.quiet,
        learning=recency.learning(state.first_scan_ns, spec.policy.learn, survey.atime_mode, time.sure_ns),
        clock_suspect=time.suspect,
        waiting=state.waiting_since_ns is not None,
        confirmed=mood.confirmed or state.confirmed(time.late_ns),
        bytes_at_start=survey.inventory.bytes,
        files_at_start=survey.inventory.files,
        entries_at_start=len(survey.facts),
    )
