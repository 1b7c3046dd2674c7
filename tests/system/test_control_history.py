"""What went, as three users are told of it by the service: whose it was decides, and whose location it is."""

import json
import os
import sqlite3
from contextlib import closing

import pytest
from tests.system.command import Warden
from tests.system.users import User

from cachewarden.paths import show

ALICE, BOB, CAROL, ROOT = User(50001), User(50002), User(50003), User(0)
HISTORY = "/api/v1/history"


@pytest.fixture
def warden(base):
    """Two locations whose entries all go: `cache`, root's, for everybody, and `home`, which is Bob's."""
    made = Warden(f"{base}/warden")
    for name, uid in (("cache", 0), ("home", BOB.uid)):
        made.location(name, f"{base}/{name}")
        os.mkdir(f"{base}/{name}")
        os.chown(f"{base}/{name}", uid, uid)
        os.chmod(f"{base}/{name}", 0o1777)
    made.policy |= {"max_size": "4KiB"}
    made.daemon |= {"interval": "1h"}
    return made


@pytest.fixture
def socket(warden):
    """Where the control socket is."""
    return os.path.join(warden.runtime_dir, "control.sock")


@pytest.fixture
def gone(base, warden):
    """Entries of all of them, evicted by a pass before the service runs."""
    for user in (ALICE, BOB, ROOT):
        user.make(f"{base}/cache/of-{user.uid}")
    ALICE.make(f"{base}/home/guest")
    assert warden.once().status == 0
    assert os.listdir(f"{base}/cache") == os.listdir(f"{base}/home") == []


def told(user, socket, query=""):
    return user.ask(socket, "GET", HISTORY + query).entries


def test_each_user_is_told_of_what_went_of_his_and_from_his_location_and_root_of_all(gone, warden, socket):
    with warden.service():
        assert told(ALICE, socket) == ["guest", "of-50001"]
        assert told(BOB, socket) == ["guest", "of-50002"]
        assert told(CAROL, socket) == []
        rows = ROOT.ask(socket, "GET", HISTORY).document
    assert {row["entry"]: (row["owner"], row["user"]) for row in rows} == {
        "of-50001": (50001, "50001"),
        "of-50002": (50002, "50002"),
        "of-0": (0, "root"),
        "guest": (50001, "50001"),
    }


def test_a_filter_and_a_limit_are_about_what_the_user_is_told(gone, warden, socket):
    with warden.service():
        assert told(ALICE, socket, "?location=cache") == ["of-50001"]
        assert told(BOB, socket, "?location=home") == ["guest"]
        newest = [ALICE.ask(socket, "GET", f"{HISTORY}?limit={limit}").document for limit in (1, 2)]
    assert newest[0] == newest[1][:1]
    assert len(newest[1]) == 2


def test_what_a_user_evicts_himself_is_in_his_history_and_in_no_others(base, warden, socket):
    name = b"m\xff\n"
    with warden.service():
        ALICE.make(os.fsencode(base) + b"/cache/" + name)
        path = f"{base}/cache/{show(name)}"
        assert ALICE.ask(socket, "POST", "/api/v1/evict", {"path": path}).status == 200
        assert told(ALICE, socket) == [show(name)]
        assert told(BOB, socket) == told(CAROL, socket) == []


def test_whose_it_was_when_it_went_counts_and_not_who_has_the_name_now(gone, base, warden, socket):
    BOB.make(f"{base}/cache/of-50001")
    assert warden.once().status == 0
    with warden.service():
        rows = {user.uid: user.ask(socket, "GET", HISTORY).document for user in (ALICE, BOB)}
    for uid in (ALICE.uid, BOB.uid):
        (row,) = [row for row in rows[uid] if row["entry"] == "of-50001"]
        assert row["owner"] == uid


def test_a_location_configured_no_more_is_still_told_to_those_whose_entries_went(gone, warden, socket):
    del warden.locations["home"]
    with warden.service():
        assert told(ALICE, socket) == ["guest", "of-50001"]
        assert told(BOB, socket) == ["of-50002"]  # whose the place is now, nobody looks at


def test_what_an_older_version_recorded_is_told_to_the_owner_of_the_location_alone(gone, warden, socket):
    with closing(sqlite3.connect(f"{warden.state_dir}/ledger.sqlite")) as ledger:
        ledger.execute("UPDATE evictions SET owner = NULL")
        ledger.commit()
    with warden.service():
        assert told(ALICE, socket) == []
        assert told(BOB, socket) == ["guest"]
        rows = ROOT.ask(socket, "GET", HISTORY).document
    assert {(row["owner"], row["user"]) for row in rows} == {(None, None)}
    assert len(rows) == 4


def test_commands_of_users_show_what_went_of_theirs_and_root_sees_whose_all_was(gone, base, warden):
    us = {"CACHEWARDEN_DAEMON__RUNTIME_DIR": warden.runtime_dir}
    alice, carol = User(ALICE.uid, environ=us), User(CAROL.uid, environ=us)
    with warden.service():
        shown = alice.command("history").stdout
        assert "of-50001" in shown
        assert "of-50002" not in shown
        assert "USER" not in shown
        owners = {each["owner"] for each in json.loads(alice.command("history", "--json").stdout)}
        assert owners == {ALICE.uid}
        assert "evicted" in alice.command("explain", f"{base}/cache/of-50001").stdout
        assert carol.command("explain", f"{base}/cache/of-50001").returncode == 2
    shown = warden("history").out.splitlines()
    assert "USER" in shown[0]
    assert any("of-0" in line and " root " in line for line in shown)
