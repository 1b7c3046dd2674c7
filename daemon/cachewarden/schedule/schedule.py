"""Deciding on two clocks what is due, and a tick that wakes up to decide."""

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any

from apscheduler.executors.debug import DebugExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from cachewarden.clock import Clock
from cachewarden.schedule.cron import Cron
from cachewarden.units import ClockRange

_TICK = timedelta(seconds=1)
_STEP_BACK_NS = 60 * 10**9


class Schedule:
    """Calls `on_due`, on a thread of its own, each time that a reconcile of everything is due.

    The interval counts on the monotonic clock: a step of the wall clock, either way, moves nothing;
    after a suspended night one reconcile is due, and not a hundred. Cron times are wall times. What
    comes due while `on_due` still runs is due once, right after it. `zone` is the machine's own
    unless given.
    """

    def __init__(self, on_due: Callable[[], None], clock: Clock, zone: tzinfo | None = None) -> None:
        self._on_due = on_due
        self._clock = clock
        self._lock = threading.Lock()
        self._scheduler = _scheduler(self.turn)
        self._zone: tzinfo = zone or self._scheduler.timezone
        self._interval_ns: int | None = None
        self._last_ns: int | None = None  # monotonic: when the interval began that runs now
        self._cron: Cron | None = None
        self._fixed: datetime | None = None  # the next time of the cron line, as the wall will show it
        self._wall_ns = 0
        self._quiet: tuple[ClockRange, ...] = ()

    def configure(
        self, interval_ns: int | None, cron: str | None = None, quiet_hours: Sequence[ClockRange] = ()
    ) -> None:
        """Set or change what is due when; for a start and for each reload.

        The first reconcile is due after one interval: what is there at the start gets its pass as soon as it
        is found, and a second one a moment later would measure it all again. At a reload the interval
        counts on from the last one. Raises ValueError for a bad cron line, and everything stays as it was.
        """
        fresh = None if cron is None else Cron(cron, self._zone)
        with self._lock:
            if self._last_ns is None:
                self._last_ns = self._clock.monotonic_ns()
            self._interval_ns = interval_ns
            self._quiet = tuple(quiet_hours)
            self._cron = fresh
            self._wall_ns = self._clock.wall_ns()
            self._fixed = None if fresh is None else fresh.next_after(fresh.calendar(self._wall_ns))

    def start(self) -> None:
        """Begin to tick."""
        # A tick that is skipped because `on_due` still runs is the point, and no warning.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        self._scheduler.start()

    def stop(self) -> None:
        """End the ticking; waits at most two seconds for an `on_due` that is under way."""
        if self._scheduler.running:
            # APScheduler waits for its thread without an end.
            ending = threading.Thread(target=self._scheduler.shutdown, name="schedule-stop", daemon=True)
            ending.start()
            ending.join(2)

    def turn(self) -> bool:
        """Look at the clocks once and call `on_due` if something is due; whether it was."""
        with self._lock:
            due = self._interval_over() | self._cron_over()
        if due:
            self._on_due()
        return due

    def quiet(self, wall_ns: int) -> bool:
        """Whether this moment lies in the quiet hours."""
        local = datetime.fromtimestamp(wall_ns // 10**9, self._zone)
        return any(each.contains(local.hour * 60 + local.minute) for each in self._quiet)

    def next_due_ns(self) -> int | None:
        """When the next reconcile is due, as far as is known, in wall time; None: never."""
        with self._lock:
            times = []
            if self._interval_ns is not None and self._last_ns is not None:
                left = self._last_ns + self._interval_ns - self._clock.monotonic_ns()
                times.append(self._clock.wall_ns() + max(left, 0))
            if self._cron is not None and self._fixed is not None:
                times.append(self._cron.wall_ns(self._fixed))
            return min(times, default=None)

    def _interval_over(self) -> bool:
        now = self._clock.monotonic_ns()
        if self._interval_ns is None or self._last_ns is None or now - self._last_ns < self._interval_ns:
            return False
        # Counted from when it was due, so that ticks which come late do not add up over a day;
        # counted from now when a whole interval was missed: one reconcile makes up for all of them.
        planned = self._last_ns + self._interval_ns
        self._last_ns = planned if now - planned < self._interval_ns else now
        return True

    def _cron_over(self) -> bool:
        if self._cron is None or self._fixed is None:
            return False
        wall_ns = self._clock.wall_ns()
        shown = self._cron.calendar(wall_ns)
        if wall_ns < self._wall_ns - _STEP_BACK_NS:
            # The clock was set back. Otherwise a clock that was once a year ahead would silence the
            # cron line for a year. An hour shown twice is another thing: real time went on in it.
            self._fixed = self._cron.next_after(shown)
        self._wall_ns = wall_ns
        if self._fixed is None or shown < self._fixed:
            return False
        self._fixed = self._cron.next_after(shown)
        return True


def _scheduler(turn: Callable[[], bool]) -> BackgroundScheduler:
    scheduler = BackgroundScheduler(
        jobstores={"default": _SteadyStore()},
        # Runs the job on the scheduler's own daemon thread: passes cannot overlap, and nothing waits
        # at exit for a pool of threads.
        executors={"default": DebugExecutor()},
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
    )
    scheduler.add_job(turn, _Tick(), id="tick")
    return scheduler


class _Tick(BaseTrigger):  # type: ignore[misc]
    """A moment after now, always. APScheduler's own interval lists every tick that a jump skipped."""

    def get_next_fire_time(self, _previous: datetime | None, now: datetime) -> datetime:
        return now + _TICK


class _SteadyStore(MemoryJobStore):  # type: ignore[misc]
    """Keeps the tick going when the wall clock is set back.

    APScheduler remembers at which wall time a job is to run: set back by two hours, it would sleep
    for two hours. A job that is further away than its tick was left behind by such a step.
    """

    def get_due_jobs(self, now: datetime) -> Any:
        for job in self.get_all_jobs():
            if job.next_run_time is not None and job.next_run_time > now + _TICK:
                job.next_run_time = now
                self.update_job(job)
        return super().get_due_jobs(now)
