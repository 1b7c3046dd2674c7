"""Having other tools prune their caches, for locations that say `delegate = true`."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cachewarden.enforce.survey import Survey
from cachewarden.enforce.surveyor import Means
from cachewarden.enforce.work import Work
from cachewarden.evict.tools import Account, RefusedError, ToolsCache, prune
from cachewarden.layouts.delegated import DELEGATED
from cachewarden.ledger import covers
from cachewarden.paths import show
from cachewarden_policies.policy import HOUR, SECOND
from cachewarden_policies.restraint import may_prune
from cachewarden_policies.verdicts import LocationPlan

_LAYOUTS = frozenset(layout.name for layout in DELEGATED)

# A tool that did not get its cache below the limit will not do better a minute later. It is asked again
# when there is clearly more in the cache, or after this time.
_AGAIN_NS = 6 * HOUR
_GROWN = 1.05
# Meanwhile nothing else is evicted on its filesystem. So one that takes long waits long: at most a 36th of
# the time goes to it, and to the ten minutes of a time-out belong six hours.
_TIMES = 36


@dataclass(slots=True)
class Delegation:
    """Knows which tools were asked not long ago. Safe to use from several threads."""

    accounts: Callable[[int], Account]
    _asked: dict[str, tuple[int, int]] = field(default_factory=dict)
    _until: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, means: Means, work: Work, plan: LocationPlan, stop: Callable[[], bool]) -> bool:
        """Run the tool of one location that is over its size limit; False: there was no reason to, or no way.

        It may take minutes, up to its time-out; `stop` is asked meanwhile.
        """
        survey = work.survey
        spec, layout = survey.spec, survey.inventory.layout
        if not spec.delegate or layout not in _LAYOUTS or plan.need_bytes <= 0 or _held_back(work, plan):
            return False
        if self._too_soon(spec.key, work.location.usage_bytes, means.clock.monotonic_ns()):
            return False
        try:
            _refuse_guarded(survey)
            cache = ToolsCache(survey.root_fd, spec.path, layout, plan.target_bytes)
            ran = prune(cache, stop, self.accounts)
        except (RefusedError, OSError) as error:
            means.journal.notice(f"{spec.name}: not delegated to {layout}: {error}")
            self.learn(means, [work])
            return False
        means.journal.notice(f"{spec.name}: {ran.sentence}")
        with self._lock:
            self._until[spec.key] = means.clock.monotonic_ns() + int(ran.seconds * _TIMES * SECOND)
        work.pruned = True
        return True

    def learn(self, means: Means, works: Sequence[Work]) -> None:
        """How large these caches are after their tools were asked."""
        now_ns = means.clock.monotonic_ns()
        with self._lock:
            self._asked |= {work.key: (work.location.usage_bytes, now_ns) for work in works}

    def _too_soon(self, key: str, usage_bytes: int, now_ns: int) -> bool:
        with self._lock:
            left, asked_ns = self._asked.get(key, (0, now_ns - _AGAIN_NS))
            if now_ns < self._until.get(key, now_ns):
                return True
        return usage_bytes <= left * _GROWN and now_ns - asked_ns < _AGAIN_NS


def _refuse_guarded(survey: Survey) -> None:
    """Raise RefusedError where a hard guard holds a part of the cache: its tool knows nothing of guards."""
    spec, grounds = survey.spec, survey.judged.grounds
    if spec.policy.protect or spec.policy.exclude:
        raise RefusedError("the tool would not heed `protect` and `exclude`")
    if grounds.pins is None or any(covers(pin, spec.path) for pin in grounds.pins):
        raise RefusedError("something in it is pinned, or the pins could not be read")
    mounted = sorted(path for path in grounds.busy if path)
    if mounted:
        raise RefusedError(f"something is mounted in it, at {show(mounted[0])}")


def _held_back(work: Work, plan: LocationPlan) -> bool:
    hard = plan.hard_limit_bytes
    over_hard = hard is not None and work.location.usage_bytes > hard
    return not may_prune(work.location.circumstances, over_hard=over_hard)
