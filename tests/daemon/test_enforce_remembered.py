"""Passes that go on from what was measured before: they look at what changed, and find what a walk finds."""

import os
import shutil
import time

import pytest
from tests.daemon.passes import limit, policy
from tests.daemon.remembering import Remembering, elsewhere, grow, make, writer

from cachewarden.ledger import Pin
from cachewarden_policies.policy import DAY, HOUR
from cachewarden_policies.reasons import KeepReason, Outcome

pytestmark = pytest.mark.root

KIB = 1 << 10


@pytest.fixture
def field(tmp_path, needs_root):
    made = Remembering(tmp_path)
    yield made
    made.close(in_order=False)


def du(root) -> int:
    """Allocated bytes of all files below a directory, each once."""
    seen = {}
    for here, _, names in os.walk(root):
        for name in names:
            found = os.lstat(os.path.join(here, name))
            seen[found.st_ino] = found.st_blocks * 512
    return sum(seen.values())


def test_a_location_in_which_nothing_changed_is_not_walked_again(field):
    for number in range(10):
        make(field.root / f"e{number}")
    report = field.settle(policy())
    assert (report.bytes_before, report.gauges.entries, field.heard.walked) == (du(field.root), 10, 0)


def test_only_what_changed_is_measured_again(field):
    for number in range(10):
        make(field.root / f"e{number}")
    field.let_times_settle()
    field.settle(policy())
    grow(field.root / "e3" / "0")
    report = field.run(policy())
    assert (report.bytes_before, field.heard.walked) == (du(field.root), 5)
    elsewhere("import shutil; shutil.rmtree(sys.argv[1])", field.root / "e4")
    make(field.root / "new", files=2)
    report = field.run(policy())
    assert (report.bytes_before, report.gauges.entries) == (du(field.root), 10)
    assert field.heard.walked <= 7  # e3, which was not still yet, and the new one


def test_an_entry_that_was_moved_away_changed_and_moved_back_is_measured_again(field, tmp_path):
    make(field.root / "e" / "deep")
    make(field.root / "other")
    field.settle(policy())
    (field.root / "e").rename(tmp_path / "away")
    grow(tmp_path / "away" / "deep" / "0")
    (tmp_path / "away").rename(field.root / "e")
    assert field.run(policy()).bytes_before == du(field.root)


def test_a_file_that_grows_while_somebody_has_it_open_is_in_the_figures_of_each_pass(field):
    make(field.root / "e")
    make(field.root / "other")
    field.settle(policy())
    with writer(field.root / "e" / "0") as more:
        for _ in range(3):
            field.run(policy())
            field.run(policy())  # still by all signs, but for the opener
            more()
            assert field.run(policy()).bytes_before == du(field.root)
            assert field.heard.walked == 5  # the other entry is left alone


def test_what_differs_is_measured_until_it_is_still_whoever_writes(tmp_path, needs_root):
    field = Remembering(tmp_path, ignore=("python*",))
    try:
        make(field.root / "e")
        make(field.root / "other")
        field.settle(policy())
        with writer(field.root / "e" / "0") as more:
            more()
            os.utime(field.root / "e")  # and the writer gives a sign, for once
            (field.root / "e" / "sign").touch()
            for _ in range(4):
                assert field.run(policy()).bytes_before == du(field.root)
                more()
            assert field.run(policy()).bytes_before == du(field.root)
    finally:
        field.close(in_order=False)


def test_everything_is_walked_now_and_then_though_nothing_seems_to_change(field):
    for number in range(3):
        make(field.root / f"e{number}")
    field.settle(policy())
    field.clock.advance(5 * HOUR)
    field.run(policy())
    assert field.heard.walked == 0
    field.clock.advance(2 * HOUR)
    field.run(policy())
    assert field.heard.walked == 15


def test_another_policy_or_layout_is_not_answered_from_memory(field):
    make(field.root / "e" / "a")
    make(field.root / "e" / "tmp")
    whole = field.settle(policy()).bytes_before
    report = field.run(policy(exclude=("tmp",)))
    assert report.bytes_before == whole // 2
    assert field.run(policy(), layout="plain").bytes_before == whole


def test_a_pass_that_fails_half_way_does_not_lose_what_changed(field):
    for number in range(3):
        make(field.root / f"e{number}")
    field.settle(policy())
    grow(field.root / "e1" / "0")
    field.heard.measured = None  # what a walk reports to: calling it fails
    with pytest.raises(TypeError):
        field.run(policy())
    del field.heard.measured
    assert field.run(policy()).bytes_before == du(field.root)
    assert field.heard.walked == 15


def test_what_goes_is_what_is_there_and_not_what_was_remembered(field):
    for number in range(4):
        make(field.root / f"e{number}", files=1, kib=1024)
    field.settle(policy())
    os.utime(field.root / "e0" / "0", (5, 5))  # no directory tells of that
    report = field.run(policy(limits=limit(2)))
    assert report.outcome is Outcome.TRIMMED
    assert du(field.root) <= 2 << 20
    assert {each.entry for each in report.evicted} >= {b"e0"}
    after = field.run(policy(limits=limit(2)))
    assert (after.bytes_before, after.gauges.entries) == (du(field.root), len(os.listdir(field.root)))


def test_an_abandoned_download_ages_though_nothing_changes(field):
    blobs = field.root / "models--a--b" / "blobs"
    elsewhere(
        """
os.makedirs(sys.argv[1])
os.makedirs(sys.argv[1] + "/../snapshots/0/")
os.makedirs(sys.argv[1] + "/../refs")
for name in ("full", "part.incomplete"):
    open(f"{sys.argv[1]}/{name}", "wb").write(os.urandom(65536))
os.symlink("../../blobs/full", sys.argv[1] + "/../snapshots/0/f")
""",
        blobs,
    )
    field.settle(policy())
    field.clock.advance(DAY - HOUR)
    assert field.run(policy()).gauges.entries == 1
    field.clock.advance(2 * HOUR)
    assert field.run(policy()).gauges.entries == 2  # it is an entry of its own now, and may go
    assert field.heard.walked <= 3


def test_a_restart_shows_what_was_known_and_then_looks_for_itself(field):
    for number in range(5):
        make(field.root / f"e{number}")
    before = field.settle(policy())
    field.close()
    grow(field.root / "e2" / "0")  # no directory's times tell
    field.open()
    report = field.run(policy())
    ((totals, changed),) = field.heard.recalls
    assert (totals.bytes, totals.files, totals.entries) == (before.bytes_before, 25, 5)
    assert (report.bytes_before, field.heard.walked) == (du(field.root), 25)
    assert changed <= 6  # directories so young that their times prove nothing yet


def test_what_was_kept_is_told_for_what_it_is_until_it_is_verified(field):
    make(field.root / "e")
    field.settle(policy())
    field.restart()
    seen = []
    field.heard.recalled = lambda spec, *_: seen.append(field.ledger.location_state(spec.key))
    field.run(policy())
    (state,) = seen
    assert (state.bytes, state.usage_complete) == (du(field.root), False)
    assert field.ledger.location_state(state.key).usage_complete is True


def test_after_a_restart_with_the_groups_kept_only_what_changed_meanwhile_is_measured(field):
    for number in range(5):
        make(field.root / f"e{number}")
    field.let_times_settle()
    before = field.settle(policy())
    field.restart(kept=True)
    report = field.run(policy())
    assert (report.bytes_before, field.heard.walked) == (before.bytes_before, 0)
    field.close(kept=True)
    grow(field.root / "e2" / "0")
    make(field.root / "new")
    field.open()
    report = field.run(policy())
    assert (report.bytes_before, report.gauges.entries) == (du(field.root), 6)
    assert field.heard.walked == 10


def test_a_writer_that_had_a_file_open_before_the_restart_is_still_followed(field):
    make(field.root / "e")
    make(field.root / "other")
    field.let_times_settle()
    field.settle(policy())
    with writer(field.root / "e" / "0") as more:
        field.run(policy())
        field.run(policy())
        field.close(kept=True)
        more()
        field.open()
        assert field.run(policy()).bytes_before == du(field.root)
        assert field.heard.walked == 5


def test_after_a_kill_what_was_kept_is_shown_and_not_believed(field):
    make(field.root / "e")
    field.settle(policy())
    field.restart()
    field.run(policy())
    field.restart(in_order=False)
    grow(field.root / "e" / "0")
    report = field.run(policy())
    assert len(field.heard.recalls) == 1
    assert (report.bytes_before, field.heard.walked) == (du(field.root), 5)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "directory"])
def test_a_damaged_measure_costs_a_walk_and_is_told(field, damage):
    make(field.root / "e")
    before = field.settle(policy())
    field.close()
    (path,) = (field.base / "state" / "measures").iterdir()
    content = path.read_bytes()
    if damage == "flip":
        path.write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
        path.mkdir()
    field.open()
    report = field.run(policy())
    assert (report.bytes_before, field.heard.walked, field.heard.recalls) == (before.bytes_before, 5, [])
    assert any("is measured anew" in notice for notice in field.heard.notices)


def test_a_measure_of_another_directory_at_the_same_path_is_not_shown(field):
    make(field.root / "e")
    field.settle(policy())
    field.close()
    shutil.move(field.root, field.base / "other")
    field.root.mkdir()
    make(field.root / "f")
    field.open()
    report = field.run(policy())
    assert (field.heard.recalls, report.bytes_before) == ([], du(field.root))


def test_measures_that_cannot_be_written_are_told_and_stop_nothing(field):
    make(field.root / "e")
    (field.base / "state" / "measures").write_text("in the way")
    field.settle(policy())
    field.close()
    assert any("cannot be written" in notice for notice in field.heard.notices)
    field.open()
    assert field.run(policy()).bytes_before == du(field.root)


def test_a_location_is_not_written_again_while_nothing_changes(field):
    make(field.root / "e")
    field.settle(policy())
    (path,) = (field.base / "state" / "measures").iterdir()

    def written() -> int:
        return path.stat().st_mtime_ns

    field.clock.advance(HOUR)
    field.run(policy())
    field.clock.advance(HOUR)
    field.run(policy())
    known = written()
    field.clock.advance(HOUR)
    field.run(policy())
    assert written() == known
    grow(field.root / "e" / "0")
    time.sleep(0.01)
    field.run(policy())
    assert written() > known


def test_a_pin_holds_from_the_next_pass_on_though_nothing_in_the_location_changed(field):
    for number in range(3):
        make(field.root / f"e{number}", files=1, kib=1024)
    field.let_times_settle()
    field.settle(policy(limits=limit(4)))
    field.pins.add(Pin(os.fsencode(field.root / "e0"), field.clock.wall_ns()), field.clock.wall_ns())
    report = field.run(policy(limits=limit(1)))
    assert {each.entry: each.reason for each in report.spared}[b"e0"] is KeepReason.PINNED
    assert os.listdir(field.root) == ["e0"]


def test_a_stamp_that_lies_ahead_counts_as_now_until_now_is_later(field):
    make(field.root / "e", files=1)
    ahead_ns = field.clock.wall_ns() + 2 * HOUR
    os.utime(field.root / "e" / "0", ns=(ahead_ns, ahead_ns))
    field.settle(policy())

    def last_use():
        field.watching.watch(field.spec(policy()).key, os.fsencode(field.root))
        with field.enforcer.surveyor.surveyed([field.spec(policy())]) as findings:
            (fact,) = findings.surveys[0].facts
            return fact.last_use_ns

    assert last_use() == field.clock.wall_ns()
    field.clock.advance(HOUR)
    assert last_use() == field.clock.wall_ns()
    field.clock.advance(3 * HOUR)
    assert last_use() == ahead_ns


def test_an_opener_that_ends_holds_no_longer_though_nothing_in_the_location_changed(field):
    make(field.root / "e", files=1, kib=1024)
    field.settle(policy())
    rules = policy(limits=limit(0))
    with writer(field.root / "e" / "0"):
        (held,) = field.run(rules).spared
        assert held.reason in (KeepReason.LIVE_OPENER, KeepReason.IN_USE)
    assert [each.entry for each in field.run(rules).evicted] == [b"e"]
