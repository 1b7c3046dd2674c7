"""What metrics and status page say of a location that failed, hangs, or is not there any more."""

import os
import pwd
import time

import pytest
from tests.daemon.passes import Field, limit, policy

from cachewarden.metrics import ServiceFigures
from cachewarden.service.figures import Figures
from cachewarden_policies.reasons import Outcome

OVER = {"limits": limit(1), "protect": ("*",)}


@pytest.fixture
def field(tmp_path):
    made = Field(tmp_path.resolve())
    yield made
    made.ledger.close()


@pytest.fixture
def figures():
    return Figures(ServiceFigures("1", 0), lambda _: "none")


def over_its_limit(field, figures, **more):
    """The spec of a location whose pass fell short, after that pass."""
    field.entry("e", mib=2)
    spec = field.spec(policy(**OVER), **more)
    figures.set_locations([spec], [])
    figures.took(spec, field.run(policy(**OVER)), time.time_ns())
    (shown,) = figures.snapshot().locations
    assert (shown.outcome, shown.available, shown.over_limit_since_ns is None) == (Outcome.SHORT, True, False)
    return spec


def remove(field):
    (field.root / "e" / "f").unlink()
    (field.root / "e").rmdir()
    for left in field.root.iterdir():
        left.rmdir()
    field.root.rmdir()


def nothing_is_used(figures):
    """The page's one location is absent: nothing is used, no limit is crossed, no filesystem is its own."""
    page = figures.snapshot()
    (shown,) = page.locations
    assert (shown.bytes, shown.files, shown.entries, shown.shortfall_bytes) == (None, None, None, None)
    assert (shown.over_limit_since_ns, shown.target_bytes, shown.blocked_bytes) == (None, None, {})
    assert (shown.available, shown.outcome) == (False, Outcome.WITHIN_LIMITS)
    assert page.filesystems == ()


def test_a_cache_that_its_user_deleted_is_within_its_limits_and_uses_nothing(field, figures):
    spec = over_its_limit(field, figures)
    remove(field)
    report = field.run(policy(**OVER))
    assert (report.outcome, report.absent) == (Outcome.WITHIN_LIMITS, True)
    assert "is not there" in report.warnings[0]
    figures.took(spec, report, time.time_ns())
    nothing_is_used(figures)
    state = field.ledger.location_state(spec.key)
    assert (state.outcome, state.available) == (Outcome.WITHIN_LIMITS, False)
    assert (state.bytes, state.files, state.entries, state.over_limit_since_ns) == (None, None, None, None)


def test_that_a_cache_is_not_there_any_more_needs_no_pass_to_be_seen(field, figures):
    spec = over_its_limit(field, figures)
    figures.set_locations([], [spec])
    nothing_is_used(figures)


def test_what_must_be_a_mount_and_is_not_there_keeps_its_figures_and_is_unavailable(field, figures):
    spec = over_its_limit(field, figures, must_be_mount=True)
    remove(field)
    report = field.run(policy(**OVER), must_be_mount=True)
    assert (report.outcome, report.absent) == (Outcome.UNAVAILABLE, False)
    figures.took(spec, report, time.time_ns())
    figures.set_locations([], [spec])
    (shown,) = figures.snapshot().locations
    assert (shown.outcome, shown.available, shown.bytes is None) == (Outcome.UNAVAILABLE, False, False)
    state = field.ledger.location_state(spec.key)
    assert state.bytes is not None
    assert state.over_limit_since_ns is not None


def test_a_pass_that_failed_is_failed_and_not_unavailable_as_long_as_its_location_answers(field, figures):
    spec = over_its_limit(field, figures)
    figures.crashed(spec, time.time_ns())
    assert figures.snapshot().locations[0].outcome is Outcome.FAILED
    figures.set_silent([spec.key])
    assert figures.snapshot().locations[0].outcome is Outcome.UNAVAILABLE


def test_a_location_that_was_never_there_is_no_error_unless_it_has_to_be_a_mount(field, figures):
    plain, mount = field.spec(policy()), field.spec(policy(), must_be_mount=True)
    for spec, outcome in ((plain, Outcome.WITHIN_LIMITS), (mount, Outcome.UNAVAILABLE)):
        figures.set_locations([], [spec])
        (shown,) = figures.snapshot().locations
        assert (shown.available, shown.outcome) == (False, outcome)


def test_users_are_named_only_when_the_configuration_wants_it(field, figures):
    over_its_limit(field, figures)
    (shown,) = figures.snapshot().locations
    assert shown.users == ()
    figures.names_users = True
    (shown,) = figures.snapshot().locations
    (mine,) = shown.users
    assert mine.user == pwd.getpwuid(os.getuid()).pw_name
    assert mine.bytes == shown.bytes - shown.foreign_bytes


def test_a_user_without_a_name_is_a_number(field, figures, needs_root):
    field.entry("e", mib=2)
    os.chown(field.root / "e", 54321, 54321)
    spec = field.spec(policy())
    figures.names_users = True
    figures.set_locations([spec], [])
    figures.took(spec, field.run(policy()), time.time_ns())
    (shown,) = figures.snapshot().locations
    assert [user.user for user in shown.users] == ["54321"]
