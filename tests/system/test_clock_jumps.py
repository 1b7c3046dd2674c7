"""The real commands under a wall clock that jumps, by libfaketime: the machine's own clock stays alone."""

import glob
import os
import signal
import time

import pytest
from tests.ports import free_port
from tests.system.command import PROGRAM, running
from tests.system.trees import DAY, age, fill, wait_until

YEAR = 365 * DAY
LIBRARIES = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib*/faketime/libfaketimeMT.so.1")


class FalseClock:
    """A wall clock that is as far off as its file says, for processes that have its environment."""

    def __init__(self, path, library):
        self.path = path
        self.environ = {
            "LD_PRELOAD": library,
            "FAKETIME_TIMESTAMP_FILE": path,
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",  # and neither the clock that counts from the boot
            "NO_FAKE_STAT": "1",
        }
        self.off(0)

    def off(self, seconds):
        """Let it jump to so many seconds off the machine's."""
        with open(f"{self.path}.new", "w", encoding="ascii") as file:
            file.write(f"{seconds:+d}")
        os.rename(f"{self.path}.new", self.path)


@pytest.fixture
def clock(tmp_path):
    """A clock that can be set wrong."""
    found = [path for pattern in LIBRARIES for path in glob.glob(pattern)]
    if not found:
        pytest.skip("libfaketime is not here (Debian: faketime): the machine's own clock must not be set")
    return FalseClock(str(tmp_path / "clock"), found[0])


def serving(warden, clock):
    """The service under a false clock."""
    port = free_port()
    warden.daemon["http"] = f"127.0.0.1:{port}"
    warden.write()
    false = [f"{name}={value}" for name, value in clock.environ.items()]
    command = ["env", *false, PROGRAM, "--config", warden.file]
    return running(command, port, os.path.join(warden.base, "service.log"))


def entries(root):
    for name, days in (("young", 0), ("old", 20)):
        fill(f"{root}/{name}/f")
        age(f"{root}/{name}", days)


def once(warden, clock, *arguments):
    warden.write()
    return warden("once", "--json", *arguments, environ=clock.environ)


def test_a_year_ahead_between_two_commands_ages_nothing_out_until_the_clock_has_stayed_there(
    warden, root, clock
):
    entries(root)
    warden.policy |= {"max_idle": "30d", "max_age": "90d"}
    warden.daemon |= {"interval": "4s"}
    assert once(warden, clock).evicted == []
    clock.off(YEAR)
    told = warden("plan", "--json", environ=clock.environ)
    assert told.evicted == []
    assert set(told.kept.values()) == {"clock"}
    second = once(warden, clock)
    assert (second.status, second.evicted) == (0, [])
    assert "jumped ahead by 365 d" in second.err
    time.sleep(4)
    assert sorted(once(warden, clock).evicted) == ["old", "young"]


def test_a_year_back_between_two_commands_is_no_trouble(warden, root, clock):
    entries(root)
    warden.policy |= {"max_idle": "30d", "max_size": "1.5MiB", "target_size": "100%"}
    clock.off(YEAR)
    assert once(warden, clock).status == 0
    fill(f"{root}/later/f")
    clock.off(0)
    second = once(warden, clock)
    assert second.status == 0
    assert "jumped back by 365 d" in second.err
    assert warden("status", "--json").json["locations"][0]["outcome"] in {"within_limits", "trimmed"}


def test_a_pin_that_is_set_after_a_jump_costs_no_other_pin(warden, root, clock):
    """Setting one drops those that have ended, and by a clock that is a year ahead all have."""
    entries(root)
    warden.policy |= {"evict_all": True}
    assert warden("pin", f"{root}/old", "--for", "7d", environ=clock.environ).status == 0
    assert once(warden, clock).evicted == ["young"]
    clock.off(YEAR)
    fill(f"{root}/new/f")
    assert warden("pin", f"{root}/new", "--for", "7d", environ=clock.environ).status == 0
    clock.off(0)
    assert once(warden, clock).evicted == []
    assert sorted(os.listdir(root)) == ["new", "old"]


def test_a_running_service_ages_nothing_out_when_its_clock_goes_a_year_ahead(warden, root, clock):
    entries(root)
    warden.policy |= {"max_idle": "30d"}
    warden.daemon |= {"interval": "1h"}
    with serving(warden, clock) as service:
        wait_until(lambda: service.passes() >= 1)
        for off in (YEAR, 2 * YEAR):
            before = service.passes()
            clock.off(off)
            service.child.send_signal(signal.SIGUSR1)
            wait_until(lambda: service.passes() > before)  # noqa: B023 - called at once
        assert sorted(os.listdir(root)) == ["old", "young"]
        assert "jumped ahead by 365 d" in service.log


def test_each_interval_is_due_once_whatever_the_clock_of_a_running_service_does(warden, root, clock):
    entries(root)
    warden.daemon |= {"interval": "1s", "schedule": "0 0 1 1 *"}
    with serving(warden, clock) as service:
        wait_until(lambda: service.passes() >= 2)
        for off in (YEAR, -2 * 3600, 120, 0):
            before, begun = service.passes(), time.monotonic()
            clock.off(off)
            wait_until(lambda: service.passes() >= before + 3)  # noqa: B023 - called at once
            took = time.monotonic() - begun
            # One more for the cron line, which a year ahead is due once, and one that was under way.
            assert service.passes() - before <= took + 4
        status = warden("status", "--json").json["locations"][0]
        assert status["outcome"] == "within_limits"
