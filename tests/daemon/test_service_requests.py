"""Which passes are wanted, and when: a thousand events make one pass."""

from cachewarden.service.requests import Requests

SECOND = 10**9


def test_a_change_waits_until_it_was_quiet_for_the_settling_time():
    requests = Requests(settle_ns=SECOND)
    requests.changed("disk", 0)
    assert requests.take_due(SECOND - 1) == []
    requests.changed("disk", SECOND - 1)
    assert requests.take_due(SECOND) == []
    assert requests.take_due(2 * SECOND) == ["disk"]
    assert requests.take_due(3 * SECOND) == []


def test_a_writer_that_never_pauses_cannot_put_a_pass_off_for_ever():
    requests = Requests(settle_ns=SECOND)
    due = []
    for tenth in range(200):
        requests.changed("disk", tenth * SECOND // 10)
        due += requests.take_due(tenth * SECOND // 10)
    assert due == ["disk"]


def test_a_thousand_changes_make_one_pass():
    requests = Requests(settle_ns=SECOND)
    for number in range(1000):
        requests.changed("disk", number)
    assert requests.take_due(2 * SECOND) == ["disk"]


def test_what_is_wanted_is_due_at_once_also_while_a_pass_rests():
    requests = Requests(settle_ns=SECOND)
    requests.finished("disk", 100 * SECOND, 100 * SECOND)
    requests.wanted("disk", 101 * SECOND)
    assert requests.take_due(101 * SECOND) == ["disk"]


def test_passes_that_changes_ask_for_take_a_fifth_of_the_time_at_most():
    requests = Requests(settle_ns=SECOND)
    requests.finished("disk", 10 * SECOND, 10 * SECOND)
    requests.changed("disk", 11 * SECOND)
    assert requests.take_due(49 * SECOND) == []
    assert requests.take_due(50 * SECOND) == ["disk"]


def test_groups_do_not_wait_for_each_other_and_dropped_ones_are_forgotten():
    requests = Requests(settle_ns=SECOND)
    requests.finished("slow", 100 * SECOND, 100 * SECOND)
    requests.changed("slow", 100 * SECOND)
    requests.changed("quick", 100 * SECOND)
    assert requests.take_due(102 * SECOND) == ["quick"]
    requests.forget({"quick"})
    assert requests.take_due(1000 * SECOND) == []


def test_a_pass_that_was_wanted_whatever_changed_makes_changes_wait_for_nothing():
    requests = Requests(settle_ns=SECOND)
    requests.wanted("disk", 0)
    assert requests.take_due(0) == ["disk"]
    requests.finished("disk", 100 * SECOND, 100 * SECOND)
    requests.changed("disk", 100 * SECOND)
    assert requests.take_due(101 * SECOND) == ["disk"]
    requests.finished("disk", 10 * SECOND, 111 * SECOND)
    requests.changed("disk", 111 * SECOND)
    assert requests.take_due(150 * SECOND) == []
    assert requests.take_due(151 * SECOND) == ["disk"]


def test_what_changes_during_a_pass_waits_for_its_end_and_rests_after_it():
    requests = Requests(settle_ns=SECOND)
    requests.changed("disk", 0)
    assert requests.take_due(SECOND) == ["disk"]
    requests.changed("disk", 2 * SECOND)
    assert requests.take_due(9 * SECOND, busy=["disk"]) == []
    requests.finished("disk", 10 * SECOND, 11 * SECOND)
    assert requests.take_due(50 * SECOND) == []
    assert requests.take_due(51 * SECOND) == ["disk"]


def test_when_the_next_pass_is_due_is_known_beforehand():
    requests = Requests(settle_ns=SECOND)
    assert requests.next_ns() is None
    assert requests.changed("disk", 5 * SECOND)
    assert not requests.changed("disk", 6 * SECOND)
    assert requests.next_ns() == 7 * SECOND
    requests.changed("other", 0)
    assert requests.next_ns() == SECOND
    assert requests.next_ns(busy=["other"]) == 7 * SECOND
    requests.wanted("disk", 6 * SECOND)
    assert requests.next_ns(busy=["other"]) <= 6 * SECOND
