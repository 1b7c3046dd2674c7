"""Lanes: what hangs on one filesystem is not waited for, and stops nobody on another."""

import threading
import time

import pytest

from cachewarden.errors import ServiceRefusedError, UsageError
from cachewarden.service.control.lanes import Lanes


@pytest.fixture
def lanes():
    made = Lanes()
    yield made
    made.end()


@pytest.fixture
def hang():
    event = threading.Event()
    yield event
    event.set()


def test_a_job_gives_its_value_or_raises_its_error_where_it_was_given(lanes):
    def wrong():
        raise UsageError("no")

    assert lanes.run("8:1", lambda: 7, 10) == 7
    with pytest.raises(UsageError, match="no"):
        lanes.run("8:1", wrong, 10)
    assert lanes.run("8:1", lambda: 8, 10) == 8


def test_a_job_that_raises_a_timeout_of_its_own_is_not_taken_for_one_that_hangs(lanes):
    def slow():
        raise TimeoutError("of a socket")

    with pytest.raises(TimeoutError, match="of a socket"):
        lanes.run("8:1", slow, 10)
    assert lanes.run("8:1", lambda: 1, 10) == 1


def test_what_hangs_is_given_up_and_the_next_is_told_so_at_once_and_others_go_on(lanes, hang):
    with pytest.raises(ServiceRefusedError) as refused:
        lanes.run("8:1", hang.wait, 0.2)
    assert refused.value.http == 504
    begun = time.monotonic()
    with pytest.raises(ServiceRefusedError):
        lanes.run("8:1", lambda: 1, 60)
    assert time.monotonic() - begun < 30
    assert lanes.run("8:2", lambda: 2, 10) == 2
    hang.set()
    end = time.monotonic() + 10
    while True:
        try:
            assert lanes.run("8:1", lambda: 3, 10) == 3
        except ServiceRefusedError:
            assert time.monotonic() < end
            time.sleep(0.02)
        else:
            break


def test_only_a_few_wait_for_one_filesystem_and_one_thread_works_for_all_of_them(lanes, hang):
    refused = []

    def ask():
        try:
            lanes.run("8:1", hang.wait, 20)
        except ServiceRefusedError as error:
            refused.append(error.http)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for each in threads:
        each.start()
    end = time.monotonic() + 10
    while len(refused) < 20 - 1 - 8:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert sum(each.name == "lane 8:1" for each in threading.enumerate()) == 1
    hang.set()
    for each in threads:
        each.join(10)
    assert set(refused) == {503}
    assert len(refused) == 20 - 1 - 8


def test_at_the_end_nobody_waits_any_longer(lanes, hang):
    found = []

    def ask():
        with pytest.raises(ServiceRefusedError) as refused:
            lanes.run("8:1", hang.wait, 600)
        found.append(refused.value.http)

    waiting = threading.Thread(target=ask)
    waiting.start()
    time.sleep(0.1)
    lanes.end()
    waiting.join(10)
    assert found == [503]
    with pytest.raises(ServiceRefusedError):
        lanes.run("8:2", lambda: 1, 10)
