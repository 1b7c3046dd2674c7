"""Over the socket, a confirmation says what it confirms, and what nobody can look at is not confirmed."""

import json
import os
import subprocess
import time

import pytest
from tests.system.command import Warden
from tests.system.users import User

USER, ROOT = User(50001), User(0)
MIB = 1 << 20
API = "/api/v1"
NAMES = [f"e{number}" for number in range(6)]


@pytest.fixture
def warden(base):
    """A location of six entries that would be empty but for `max_share`: a pass takes one and waits."""
    made = Warden(f"{base}/warden")
    made.location("cache", f"{base}/cache")
    os.mkdir(f"{base}/cache")
    os.chmod(f"{base}/cache", 0o1777)
    for name in NAMES:
        USER.make(f"{base}/cache/{name}")
    made.policy |= {"max_size": "4KiB", "max_share": "10%"}
    made.daemon |= {"interval": "1h"}
    return made


@pytest.fixture
def socket(warden):
    """Where the control socket is."""
    return os.path.join(warden.runtime_dir, "control.sock")


def confirm(socket, **fields):
    return ROOT.ask(socket, "POST", f"{API}/confirm", {"location": "cache", **fields})


def until(socket):
    """Until when the location is confirmed, as everybody can see."""
    (location,) = ROOT.ask(socket, "GET", f"{API}/status").document["locations"]
    return location["confirmed_until"]


def would_go(plan):
    return sorted(each["entry"] for found in plan["locations"] for each in found["would_evict"])


def settled(path, count):
    """What is left when so few are left, or when that took too long."""
    end = time.monotonic() + 60
    while len(os.listdir(path)) > count and time.monotonic() < end:
        time.sleep(0.05)
    return sorted(os.listdir(path))


def test_what_would_be_confirmed_is_shown_and_nothing_of_it_confirmed(base, warden, socket):
    with warden.service():
        left = settled(f"{base}/cache", 5)
        assert ROOT.ask(socket, "POST", f"{API}/once", {}).document["outcome"] == "waiting_for_confirmation"
        plan = ROOT.ask(socket, "POST", f"{API}/plan", {"location": "cache"}).document
        assert "confirmation" in {each["reason"] for each in plan["locations"][0]["kept"]}
        answer = confirm(socket, dry_run=True)
        assert (answer.status, answer.document["until"]) == (200, None)
        assert would_go(answer.document["plan"]) == left
        assert answer.document["plan"]["locations"][0]["in_use_checked"] == "service"
        assert until(socket) is None
        assert sorted(os.listdir(f"{base}/cache")) == left


def test_what_the_answer_shows_is_what_goes(base, warden, socket):
    with warden.service():
        left = settled(f"{base}/cache", 5)
        ROOT.ask(socket, "POST", f"{API}/pins", {"path": f"{base}/cache/{left[2]}"})
        answer = confirm(socket, **{"for": "15m"})
        assert answer.status == 200
        assert answer.document["until"] is not None
        assert would_go(answer.document["plan"]) == [*left[:2], *left[3:]]
        kept = {each["entry"]: each["reason"] for each in answer.document["plan"]["locations"][0]["kept"]}
        assert kept == {left[2]: "pinned"}
        assert settled(f"{base}/cache", 1) == [left[2]]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_user_is_shown_nothing_of_it(warden, socket, dry_run):
    with warden.service():
        answer = USER.ask(socket, "POST", f"{API}/confirm", {"location": "cache", "dry_run": dry_run})
        assert answer.status == 403
        assert "e0" not in json.dumps(answer.document)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_location_that_went_meanwhile_is_not_confirmed(base, warden, socket, dry_run):
    with warden.service():
        settled(f"{base}/cache", 5)
        os.rename(f"{base}/cache", f"{base}/elsewhere")
        answer = confirm(socket, dry_run=dry_run)
        assert answer.status == 404
        assert "nothing is confirmed" in answer.document["error"]
        assert until(socket) is None


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_location_that_is_no_mount_any_more_is_not_confirmed(base, warden, socket, dry_run):
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", f"{base}/cache"]
    subprocess.run(mount, check=True)
    warden.location("cache", f"{base}/cache", must_be_mount=True)
    try:
        for name in NAMES:
            USER.make(f"{base}/cache/{name}")
        with warden.service():
            settled(f"{base}/cache", 5)
            subprocess.run(["umount", "-l", f"{base}/cache"], check=True)
            answer = confirm(socket, dry_run=dry_run)
            assert answer.status == 503
            assert "nothing is confirmed" in answer.document["error"]
            assert until(socket) is None
    finally:
        subprocess.run(["umount", "-lq", f"{base}/cache"], check=False)
    assert len(os.listdir(f"{base}/cache")) == len(NAMES)  # what was below the mount
