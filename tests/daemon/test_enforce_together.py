"""Locations that share a pool or a disk, clocks that jump, passes that are cut short."""

import os
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from tests.daemon.passes import MIB, Field, Orders, limit, policy

from cachewarden.enforce.journal import Journal
from cachewarden.service.requests import Requests
from cachewarden.spec import LocationSpec, PoolSpec, Territory
from cachewarden_policies.policy import Amount, Floor
from cachewarden_policies.reasons import Outcome


@pytest.fixture
def field(tmp_path):
    """An empty location."""
    return Field(tmp_path)


def test_a_pass_that_was_stopped_is_not_within_limits(field):
    for number in range(6):
        field.entry(f"e{number}")
    spec = field.spec(policy(limits=limit(3)))
    report = field.enforcer.run(Territory((spec,)), [spec], Orders(), stop=lambda: True).locations[0]
    assert (report.outcome, len(report.evicted)) == (Outcome.SHORT, 0)


def test_a_pool_tells_the_location_that_another_pass_holds(field):
    class Listening(Journal):
        asked: list[str]

        def wanted(self, key):
            self.asked.append(key)

    Listening.asked = []
    (field.base / "other").mkdir()
    other_field_entry = field.base / "other" / "old"
    other_field_entry.mkdir()
    (other_field_entry / "f").write_bytes(os.urandom(4 * MIB))
    field.entry("young", mib=4, days=0)
    here = field.spec(policy())
    there = LocationSpec("there", os.fsencode(field.base / "other"), policy())
    land = Territory((here, there), (PoolSpec("both", ("root", "there"), limit(6)),))
    means = replace(field.enforcer.means, journal=Listening())
    field.enforcer = type(field.enforcer)(means)
    os.utime(other_field_entry / "f", (1, 10**9))
    field.enforcer.run(land, [there], Orders())
    report = field.enforcer.run(land, [here], Orders())
    assert report.locations[0].evicted == ()
    assert Listening.asked == [there.key]
    gone = field.enforcer.run(land, [there], Orders()).locations[0].evicted
    assert [each.entry for each in gone] == [b"old"]


def test_a_disk_that_gets_nothing_back_is_short_and_later_passes_do_not_empty_the_cache(needs_root, tmp_path):
    image, mount = tmp_path / "image", tmp_path / "disk"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(200 * MIB)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop,noatime", image, mount], check=True)
    try:
        subprocess.run(["btrfs", "subvolume", "create", mount / "sub"], check=True, stdout=subprocess.DEVNULL)
        field = Field(mount / "sub")
        for number in range(8):
            field.entry(f"e{number}", mib=4, days=20 - number)
        os.sync()
        snapshot = ["btrfs", "subvolume", "snapshot", "-r", mount / "sub", mount / "snapshot"]
        subprocess.run(snapshot, check=True, stdout=subprocess.DEVNULL)
        os.sync()
        space = os.statvfs(field.root)
        floor = Floor(min_free=Amount(absolute=space.f_bavail * space.f_frsize + 6 * MIB))
        first = field.run(policy(floor=floor))
        assert first.outcome is Outcome.SHORT
        assert any("nothing back" in warning for warning in first.warnings)
        left = field.names()
        assert 0 < len(left) < 8
        second = field.run(policy(floor=floor))
        assert (second.outcome, second.evicted) == (Outcome.SHORT, ())
        assert field.names() == left
    finally:
        field.ledger.close()
        subprocess.run(["umount", "-l", mount], check=True)


def test_two_subvolumes_of_one_btrfs_share_its_free_space(needs_root, tmp_path):
    image, mount = tmp_path / "image", tmp_path / "disk"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(200 * MIB)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop,noatime", image, mount], check=True)
    try:
        for name in ("one", "two"):
            create = ["btrfs", "subvolume", "create", mount / name]
            subprocess.run(create, check=True, stdout=subprocess.DEVNULL)
        field = Field(mount / "one")
        (mount / "two" / "root").mkdir()
        for number in range(3):
            field.entry(f"e{number}", mib=8, days=20 - number)
            subprocess.run(
                ["cp", "-a", "--reflink=never", field.root / f"e{number}", mount / "two" / "root"], check=True
            )
        os.sync()
        space = os.statvfs(mount)
        floor = Floor(min_free=Amount(absolute=space.f_bavail * space.f_frsize + 12 * MIB))
        specs = [
            LocationSpec(name, os.fsencode(mount / name / "root"), policy(floor=floor), ignore_ctime=True)
            for name in ("one", "two")
        ]
        reports = field.enforcer.run(Territory(tuple(specs)), specs, Orders()).locations
        assert sum(len(report.evicted) for report in reports) == 2
    finally:
        field.ledger.close()
        subprocess.run(["umount", "-l", mount], check=True)


def test_workers_and_the_main_loop_may_use_requests_at_once():
    """The workers go on until the main loop has taken something a hundred times, however slow it is."""
    requests = Requests(settle_ns=0)
    failed = []
    enough = threading.Event()

    def work(name):
        number = 0
        try:
            while not enough.is_set():
                requests.wanted(f"{name}{number}", number)
                requests.finished(f"{name}{number}", number, number)
                number += 1
        except RuntimeError as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    often = sys.getswitchinterval()
    sys.setswitchinterval(often / 100)
    for thread in threads:
        thread.start()
    taken = 0
    try:
        while taken < 100 and not failed:
            taken += bool(requests.take_due(10**12))
            requests.forget({"a0"})
    finally:
        sys.setswitchinterval(often)
        enough.set()
        for thread in threads:
            thread.join()
    assert failed == []
