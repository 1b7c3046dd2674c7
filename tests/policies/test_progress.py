"""After a part of a plan was carried out."""

from cachewarden_policies.policy import Policy
from cachewarden_policies.progress import advance
from cachewarden_policies.reasons import KeepReason, LastUseSource
from cachewarden_policies.situation import Entry, Location, Share


def entry(name: bytes, own: int = 10, shares: tuple[int, ...] = ()) -> Entry:
    return Entry(name, own, 1, own, 1, own, 2, 0, LastUseSource.STAMPS, 0, 0, shares=shares)


def location(*entries: Entry, shares: tuple[Share, ...] = ()) -> Location:
    total = sum(each.own_bytes for each in entries) + sum(share.bytes for share in shares)
    return Location("x", Policy(), total, len(entries) + len(shares), entries, shares)


def test_what_went_comes_off_the_usage_and_the_rest_keeps_its_order():
    progress = advance(location(entry(b"a"), entry(b"b", 7), entry(b"c")), {1}, {})
    assert [each.name for each in progress.location.entries] == [b"a", b"c"]
    assert progress.kept == (0, 2)
    assert progress.location.usage_bytes == 20
    assert (progress.gained_bytes, progress.disk_bytes, progress.disk_inodes) == (7, 7, 2)


def test_data_shared_with_one_remaining_entry_becomes_its_own():
    before = location(entry(b"a", 1, (0,)), entry(b"b", 2, (0,)), shares=(Share((0, 1), 100, 1),))
    after = advance(before, {0}, {}).location
    assert after.usage_bytes == 102
    assert after.shares == ()
    assert (after.entries[0].own_bytes, after.entries[0].disk_bytes) == (102, 102)
    assert after.entries[0].shares == ()


def test_data_with_a_link_outside_gives_the_disk_nothing_even_when_inherited():
    before = location(
        entry(b"a", 1, (0,)), entry(b"b", 2, (0,)), shares=(Share((0, 1), 100, 1, outside=True),)
    )
    after = advance(before, {0}, {}).location
    assert (after.entries[0].own_bytes, after.entries[0].disk_bytes) == (102, 2)


def test_data_shared_by_three_stays_shared_by_two_under_new_numbers():
    shares = (Share((0, 1), 50, 1), Share((0, 1, 2), 100, 1))
    before = location(entry(b"a", 1, (0, 1)), entry(b"b", 1, (0, 1)), entry(b"c", 1, (1,)), shares=shares)
    after = advance(before, {0}, {}).location
    assert after.shares == (Share((0, 1), 100, 1),)
    assert [each.shares for each in after.entries] == [(0,), (0,)]
    assert after.entries[0].own_bytes == 51


def test_shared_data_goes_with_its_last_owner_but_kept_data_stays():
    shares = (Share((0, 1), 50, 1), Share((0, 1), 100, 1, kept=True))
    before = location(entry(b"a", 1, (0, 1)), entry(b"b", 1, (0, 1)), shares=shares)
    progress = advance(before, {0, 1}, {})
    assert progress.gained_bytes == 52
    assert progress.location.usage_bytes == 100


def test_a_busy_entry_gets_a_guard_and_an_earlier_guard_is_not_overwritten():
    first = advance(location(entry(b"a")), (), {0: KeepReason.IN_USE}).location
    assert first.entries[0].veto is KeepReason.IN_USE
    assert advance(first, (), {0: KeepReason.CHANGED}).location.entries[0].veto is KeepReason.IN_USE
