"""A machine that sleeps: what is due is made up for once, and nothing seems to have hung or taken a night."""

import threading
import time

from cachewarden.clock import SetClock, SystemClock
from cachewarden.schedule import Schedule
from cachewarden.service.requests import Requests
from cachewarden.service.workers import Worker
from cachewarden_policies.policy import HOUR, MINUTE, SECOND


def test_the_clocks_of_the_machine_differ_by_what_it_slept_and_by_nothing_else():
    clock = SystemClock()
    slept = clock.monotonic_ns() - clock.awake_ns()
    assert slept >= -SECOND
    time.sleep(0.05)
    assert abs(clock.monotonic_ns() - clock.awake_ns() - slept) < SECOND


def test_a_set_clock_sleeps_as_a_machine_does():
    clock = SetClock()
    wall, monotonic, awake = clock.wall_ns(), clock.monotonic_ns(), clock.awake_ns()
    clock.suspend(8 * HOUR)
    assert (clock.wall_ns() - wall, clock.monotonic_ns() - monotonic) == (8 * HOUR, 8 * HOUR)
    assert clock.awake_ns() == awake


def test_a_worker_that_a_night_interrupts_does_not_hang_and_one_that_hangs_does():
    clock = SetClock()
    begun, go_on = threading.Event(), threading.Event()

    def job():
        begun.set()
        go_on.wait(60)

    worker = Worker("disk", lambda *_: None, clock.awake_ns)
    try:
        assert worker.offer(job)
        assert begun.wait(60)
        clock.suspend(8 * HOUR)
        assert worker.silent_for() == 0
        clock.advance(20 * SECOND)
        assert worker.silent_for() == 20
        worker.alive()
        assert worker.silent_for() == 0
    finally:
        go_on.set()
        worker.end()
        assert worker.join(60)


def test_a_night_within_a_pass_puts_off_no_later_one():
    """Passes that changes ask for rest four times as long as the last one took: 32 hours after a night."""
    requests = Requests(settle_ns=SECOND)
    clock = SetClock()
    begun = clock.awake_ns()
    clock.advance(SECOND)
    clock.suspend(8 * HOUR)
    requests.finished("disk", clock.awake_ns() - begun, clock.monotonic_ns())
    requests.changed("disk", clock.monotonic_ns())
    assert requests.take_due(clock.monotonic_ns() + 2 * SECOND) == []
    assert requests.take_due(clock.monotonic_ns() + 5 * SECOND) == ["disk"]


def test_a_night_is_one_interval_and_one_fixed_time():
    clock = SetClock()
    schedule = Schedule(lambda: None, clock)
    schedule.configure(5 * MINUTE, "*/10 * * * *")
    schedule.turn()
    clock.suspend(8 * HOUR)
    assert schedule.turn()
    assert not schedule.turn()
