"""The control socket as three users meet it: what each sees, pins, evicts and is refused."""

import contextlib
import json
import os
import stat
from urllib.parse import quote

import pytest
from tests.system.command import Warden
from tests.system.users import User

from cachewarden.paths import show

ALICE, BOB, CAROL = User(50001), User(50002), User(50003)
MIB = 1 << 20
API = "/api/v1"


@pytest.fixture
def warden(base):
    """The command with one location, `cache`, with what users may pin."""
    made = Warden(f"{base}/warden")
    made.location("cache", f"{base}/root")
    made.policy |= {"max_size": "100MiB", "max_pin": "7d", "max_pinned_size": "3.5MiB"}
    made.daemon |= {"interval": "1h"}
    return made


@pytest.fixture
def shared(base):
    """A cache in which everybody may make entries, and some have."""
    root = f"{base}/root"
    os.mkdir(root)
    os.chmod(root, 0o1777)
    ALICE.make(f"{root}/alice")
    ALICE.make(f"{root}/secret", mode="700")
    BOB.make(f"{root}/bob", size=3 * MIB)
    return root


@pytest.fixture
def socket(warden):
    """Where the control socket is."""
    return os.path.join(warden.runtime_dir, "control.sock")


def explain(user, socket, path):
    return user.ask(socket, "GET", f"{API}/explain?path={quote(path)}")


def pin(user, socket, path, **more):
    return user.ask(socket, "POST", f"{API}/pins", {"path": path, **more})


def evict(user, socket, path):
    return user.ask(socket, "POST", f"{API}/evict", {"path": path})


def test_root_sees_all_entries_and_each_user_only_his_own(shared, warden, socket):
    with warden.service():
        assert User(0).ask(socket, "GET", f"{API}/entries").entries == ["alice", "bob", "secret"]
        assert ALICE.ask(socket, "GET", f"{API}/entries?location=cache").entries == ["alice", "secret"]
        assert BOB.ask(socket, "GET", f"{API}/entries").entries == ["bob"]
        assert CAROL.ask(socket, "GET", f"{API}/entries").entries == []


def test_nothing_that_a_user_is_told_names_an_entry_or_a_process_of_another(shared, warden, socket):
    with warden.service():
        told = [
            CAROL.ask(socket, method, API + path, body).document
            for method, path, body in (
                ("GET", "/status", None),
                ("GET", "/status?mine=true", None),
                ("GET", "/entries", None),
                ("GET", "/pins", None),
                ("GET", "/history", None),
                ("POST", "/plan", {}),
            )
        ]
    text = json.dumps(told)
    assert not [name for name in ("alice", "secret", "bob") if name in text]
    assert told[0]["locations"][0]["entries"] == 3  # sums are for everybody
    assert told[5]["locations"][0]["bytes_before"] >= 5 * MIB


def test_a_user_is_told_the_same_of_what_is_anothers_and_of_what_is_not_there(shared, warden, socket):
    with warden.service():
        for ask in (explain, evict, pin):
            answers = [ask(CAROL, socket, f"{shared}/{name}") for name in ("secret", "nothing")]
            assert [each.status for each in answers] == [404, 404]
            sentences = [each.document["error"].partition(": ")[2] for each in answers]
            assert sentences[0] == sentences[1]
        assert os.path.exists(f"{shared}/secret/f")


def test_a_user_evicts_what_is_his_and_not_what_is_anothers(shared, warden, socket):
    with warden.service() as service:
        assert evict(ALICE, socket, f"{shared}/bob").status == 404
        assert os.path.exists(f"{shared}/bob/f")
        assert explain(BOB, socket, f"{shared}/bob").document["owner"] == BOB.uid
        answer = evict(BOB, socket, f"{shared}/bob")
        assert answer.status == 200
        (location,) = answer.document["locations"]
        assert [each["entry"] for each in location["evicted"]] == ["bob"]
        assert not os.path.exists(f"{shared}/bob")
        assert "event=evicted" in service.log
        assert f"uid={BOB.uid}" in service.log
        history = User(0).ask(socket, "GET", f"{API}/history").document
        assert [each["entry"] for each in history] == ["bob"]
        assert CAROL.ask(socket, "GET", f"{API}/history").document == []


def test_guards_hold_whoever_asks_for_an_eviction(shared, warden, socket):
    with warden.service():
        assert pin(CAROL, socket, f"{shared}/alice").status == 201
        answer = evict(ALICE, socket, f"{shared}/alice")
        assert answer.status == 200
        (location,) = answer.document["locations"]
        assert location["evicted"] == []
        assert [(each["entry"], each["reason"]) for each in location["spared"]] == [("alice", "pinned")]
        assert os.path.exists(f"{shared}/alice/f")


def test_a_pin_is_for_what_its_user_can_read_through_his_groups_too(shared, warden, socket):
    os.chown(f"{shared}/secret", ALICE.uid, 50100)
    os.chmod(f"{shared}/secret", 0o750)
    with warden.service():
        assert pin(CAROL, socket, f"{shared}/secret").status == 404
        assert pin(User(CAROL.uid, (50100,)), socket, f"{shared}/secret").status == 201
        assert pin(ALICE, socket, f"{shared}/secret").status == 201
        os.chmod(shared, 0o1770)  # on the way to what he could read otherwise
        assert pin(CAROL, socket, f"{shared}/alice").status == 404


def test_no_link_leads_a_pin_to_what_its_user_cannot_read(shared, warden, socket):
    os.symlink(f"{shared}/secret", f"{shared}/link")
    os.symlink("secret", f"{shared}/near")
    with warden.service():
        for path in ("link/f", "near/f", "alice/../secret", "./secret"):
            answer = pin(CAROL, socket, f"{shared}/{path}")
            assert answer.status in (400, 404), path
        assert pin(CAROL, socket, f"{shared}/near").status == 201  # the link itself, and nothing behind it
        assert explain(ALICE, socket, f"{shared}/secret").document["pinned_until"] is None


def test_a_pin_ends_at_max_pin_and_a_longer_one_is_refused(shared, warden, socket):
    with warden.service():
        answer = pin(CAROL, socket, f"{shared}/alice", **{"for": "8d"})
        assert answer.status == 403
        assert "max_pin" in answer.document["error"]
        made = pin(CAROL, socket, f"{shared}/alice", reason="thesis").document
        assert made["until"] is not None
        assert made["uid"] == CAROL.uid
        assert pin(User(0), socket, f"{shared}/bob").document["until"] is None  # root may


def test_the_pins_of_a_user_hold_no_more_than_max_pinned_size(shared, warden, socket):
    with warden.service():
        assert pin(CAROL, socket, f"{shared}/bob").status == 201  # 3 MiB of 3.5
        assert pin(CAROL, socket, f"{shared}/bob").status == 201  # anew is not twice
        assert pin(BOB, socket, f"{shared}/alice").status == 201  # of another user
        assert pin(CAROL, socket, f"{shared}/alice").status == 403
        assert "max_pinned_size" in pin(CAROL, socket, f"{shared}/alice").document["error"]


def test_a_user_takes_back_his_own_pin_only(shared, warden, socket):
    path = quote(f"{shared}/alice")
    with warden.service():
        pin(ALICE, socket, f"{shared}/alice")
        pin(CAROL, socket, f"{shared}/alice")
        assert BOB.ask(socket, "DELETE", f"{API}/pins?path={path}").status == 404
        assert CAROL.ask(socket, "DELETE", f"{API}/pins?path={path}").status == 200
        assert CAROL.ask(socket, "GET", f"{API}/pins").document == []
        left = User(0).ask(socket, "GET", f"{API}/pins").document
        assert [each["uid"] for each in left] == [ALICE.uid]


@pytest.mark.parametrize("path", ["/once", "/pause", "/resume", "/confirm"])
def test_what_is_about_everybody_is_for_root(shared, warden, socket, path):
    with warden.service():
        answer = ALICE.ask(socket, "POST", API + path, {"location": "cache"})
        assert (answer.status, answer.document["status"]) == (403, 2)
        assert User(0).ask(socket, "POST", API + path, {"location": "cache"}).status == 200


def test_a_name_that_is_no_utf8_goes_both_ways_in_its_readable_form(shared, warden, socket):
    name = b"m\xff\n\\x"
    ALICE.make(os.fsencode(shared) + b"/" + name)
    with warden.service():
        assert show(name) in ALICE.ask(socket, "GET", f"{API}/entries").entries
        assert explain(ALICE, socket, f"{shared}/{show(name)}").document["entry"] == show(name)
        assert evict(ALICE, socket, f"{shared}/{show(name)}").status == 200
    assert os.fsencode(shared) + b"/" + name not in os.listdir(os.fsencode(shared))
    assert sorted(os.listdir(shared)) == ["alice", "bob", "secret"]


def test_the_socket_is_for_all_in_a_directory_that_only_root_writes_and_goes_with_the_service(
    shared, warden, socket
):
    with warden.service():
        assert User(0).ask(socket, "POST", f"{API}/once", {}).status == 200  # its lock has a directory then
        assert stat.S_IMODE(os.stat(socket).st_mode) == 0o666
        assert stat.S_IMODE(os.stat(warden.runtime_dir).st_mode) & 0o022 == 0
        assert stat.S_IMODE(os.stat(f"{warden.runtime_dir}/locks").st_mode) == 0o700
    assert not os.path.lexists(socket)


def test_a_socket_that_a_killed_service_left_is_replaced(shared, warden, socket):
    with contextlib.suppress(AssertionError), warden.service() as service:
        service.child.kill()
        service.child.wait()
    assert os.path.lexists(socket)
    with warden.service():
        assert CAROL.ask(socket, "GET", f"{API}/status").status == 200


def test_commands_of_a_user_without_root_ask_the_service(shared, warden, socket):
    us = {"CACHEWARDEN_DAEMON__RUNTIME_DIR": warden.runtime_dir}
    alice, carol = User(ALICE.uid, environ=us), User(CAROL.uid, environ=us)
    with warden.service():
        listed = alice.command("list", "--json")
        assert sorted(each["entry"] for each in json.loads(listed.stdout)) == ["alice", "secret"]
        assert json.loads(alice.command("status", "--mine", "--json").stdout)["locations"][0]["mine_bytes"]
        assert "cache" in alice.command("status").stdout
        assert "of layout plain" in alice.command("explain", f"{shared}/alice").stdout
        assert carol.command("explain", f"{shared}/alice").returncode == 2
        assert carol.command("pin", f"{shared}/alice", "--for", "7d").returncode == 0
        assert f"{shared}/alice" in carol.command("pins").stdout
        assert alice.command("evict", f"{shared}/alice").returncode == 1
        assert carol.command("unpin", f"{shared}/alice").returncode == 0
        gone = alice.command("evict", f"{shared}/alice", "--json")
        assert gone.returncode == 0, gone.stderr
        assert json.loads(gone.stdout)["locations"][0]["evicted"][0]["entry"] == "alice"
        assert carol.command("history").stdout.startswith("Nothing")
        assert carol.command("once").returncode == 2
    without = alice.command("status")
    assert without.returncode == 2
    assert "there is no service to ask" in without.stderr
