"""Passes that take longer than the interval: counted as late, done once, never stacked."""

import os
import time

from tests.system.trees import fill, holding_lock, wait_until


def late(service):
    return service.metrics().get("cachewarden_passes_late_total", 0)


def test_intervals_that_end_during_a_pass_are_made_up_for_by_one(warden, root):
    """The pass waits for a lock that somebody has, which is as good as a slow disk."""
    fill(f"{root}/e/f")
    warden.daemon |= {"interval": "1s"}
    with warden.service() as service:
        wait_until(lambda: service.passes() >= 1)
        locks = f"{warden.runtime_dir}/locks"
        (name,) = os.listdir(locks)
        with holding_lock(f"{locks}/{name}"):
            before = late(service)
            wait_until(lambda: late(service) >= before + 3)
            stuck = service.passes()
            time.sleep(2)
            assert service.passes() <= stuck + 1, "what was under way when the lock was taken"
        stuck, begun = service.passes(), time.monotonic()
        wait_until(lambda: service.passes() > stuck)
        time.sleep(3)
        took = time.monotonic() - begun
        assert service.passes() - stuck <= took + 2, "no queue of passes is worked off"
